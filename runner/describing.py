"""Runs the describe commands of a policy's catalogs, each in a worker, and makes tools from what they print.

Front, right after start-up: discovery is answered meanwhile, tools/list waits. What comes back is foreign data.
"""

from __future__ import annotations

from policies.policy import CatalogPolicy
from runner import error_texts
from runner.catalog import derive
from runner.catalog.catalog import Catalog, CatalogRefused
from runner.catalog.tools import Tool
from runner.redaction.engine import Redactor
from runner.visible import visible
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Kind, Outcome

_SHOWN_CHARS = 400


async def catalog(
    tools: tuple[Tool, ...], catalogs: tuple[CatalogPolicy, ...], supervisor: Supervisor, redactor: Redactor
) -> Catalog:
    """All tools of a server: the policy's own, then those of its catalogs.

    Before that one cage is built and proven: a host that cannot do it ends the server, with the step and the remedy,
    instead of failing call by call. Raises HostRefused, CatalogRefused.
    """
    await supervisor.prove()
    return Catalog(tools).merged(await describe(catalogs, supervisor, redactor))


async def describe(
    catalogs: tuple[CatalogPolicy, ...], supervisor: Supervisor, redactor: Redactor
) -> list[Tool]:
    """The tools of all catalogs, in the policy's order. Raises CatalogRefused, without secrets: the start is over."""
    found: list[Tool] = []
    for catalog in catalogs:
        outcome = await supervisor.run(Call(f"describe:{catalog.name}"))
        if outcome.kind is not Kind.EXITED or outcome.exit_code != 0:
            raise _failed(catalog, outcome, redactor)
        try:
            found += derive.tools(outcome.stdout, catalog)
        except CatalogRefused as refused:
            raise CatalogRefused(redactor.text(refused.message)[0], refused.remedy) from None
    return found


def _failed(catalog: CatalogPolicy, outcome: Outcome, redactor: Redactor) -> CatalogRefused:
    code = "" if outcome.exit_code is None else f" {outcome.exit_code}"
    masked, _ = redactor.text(error_texts.decoded(outcome.stderr, outcome.stderr_total, outcome.kind))
    words = visible(masked[:_SHOWN_CHARS]).strip()
    said = f'; it said: "{words}"' if words else ""
    detail = f" ({outcome.detail})" if outcome.detail else ""
    return CatalogRefused(
        f'catalog "{catalog.name}": the describe command ended with {outcome.kind}{code}{detail}{said}',
        "run it in a terminal; in the cage it has no network, no writable folder but /tmp, and starts no programs",
    )
