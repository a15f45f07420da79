"""The calls that both servers are asked to make."""

from __future__ import annotations

from typing import Any, NamedTuple


class Made(NamedTuple):
    """One call; `name` is the test's."""

    name: str
    tool: str
    arguments: dict[str, Any]


POST = "POST"  # in arguments: the id of a draft of the workspace


def with_arguments() -> list[Made]:
    """Calls with real input."""
    campaign, brand = "in/campaign.json", "in/brand.json"
    simulation = {"seed": 7, "pairs": 4, "lift": 0.2, "noise": 0.1, "trials": 50}
    listed: list[tuple[str, dict[str, Any]]] = [
        ("campaign_check", {"file": campaign}),
        ("campaign_check with brand", {"file": campaign, "brand": brand, "optout": "in/optout.json"}),
        ("campaign_check with history", {"file": campaign, "history_db": "state/reachweaver.sqlite"}),
        ("campaign_check bad", {"file": "in/campaign-bad.json", "brand": brand}),
        ("campaign_check around", {"file": "in/../in/campaign.json"}),
        ("campaign_check not JSON", {"file": "in/not.json"}),
        ("campaign_preview", {"file": campaign, "brand": brand, "utm": True}),
        ("campaign_preview bad", {"file": "in/campaign-bad.json", "brand": brand}),
        ("claims_check", {"campaign": campaign, "brand": brand, "duplicate_threshold": 0.4}),
        ("voice_check text", {"text": "Let's delve into this game-changing tapestry — today!"}),
        ("voice_check dash", {"text": "-n --json"}),
        ("voice_check empty", {"text": ""}),
        ("voice_check lines", {"text": "one\ntwo\tthree\r@four \x1b[31m \u200b five"}),
        ("voice_check file", {"file": "in/text.txt", "platform": "bluesky"}),
        ("voice_check link", {"file": "in/link.txt"}),
        ("voice_check not UTF-8", {"file": "in/latin.txt"}),
        ("voice_check dash file", {"file": "in/-dash.txt"}),
        ("voice_check post", {"post_id": POST}),
        ("voice_check no profile", {"text": "Some words.", "profile": "in/brand.json"}),
        ("creative_preflight", {"file": "in/preflight.json"}),
        ("creative_preflight bad", {"file": "in/preflight-bad.json"}),
        ("creator_match", {"file": "in/match.json"}),
        ("creator_coverage", {"file": "in/coverage.json"}),
        ("discovery_plan", {"file": "in/discovery.json"}),
        ("engagement_queue", {"input": "in/engagement.json", "now": "2026-11-02T10:00:00Z", "sla": ["praise=1"]}),
        ("experiment_next", {"results": "in/results.json"}),
        ("experiment_simulate", simulation),
        ("experiment_simulate small", {**simulation, "seed": -7, "lift": -0.1, "noise": 1e-7, "trials": 5}),
        ("experiment_simulate bad", {**simulation, "noise": -1}),
        ("media_check", {"manifest": "in/manifest.json"}),
        ("media_check bad", {"manifest": "in/manifest-bad.json"}),
        ("media_cutlist", {"plan": "in/cutlist.json"}),
        ("media_cutlist bad", {"plan": "in/cutlist-bad.json"}),
        ("peer_benchmark", {"file": "in/peers.json", "now": "2026-11-02T10:00:00Z"}),
        ("pilot_report", {"log": "in/pilot.csv"}),
        ("pilot_report bad", {"log": "in/pilot-bad.csv"}),
        ("post_audit", {"file": "in/audit.json"}),
        ("profile_audit", {"file": "in/audit.json", "platform": "bluesky"}),
        ("repeat_check post", {"post_id": POST}),
        ("repeat_check text", {"text": "By hand", "platform": "bluesky"}),
        ("repeat_check file", {"platform": "bluesky", "file": "in/text.txt", "image": ["in/dot.png"]}),
        ("review_status packet", {"packet": "packet"}),
        ("suggest", {"snapshot": "in/audit.json", "engagement_export": "in/engagement.json", "include_db": True}),
        ("trace", {"post_id": POST, "log": ["in/worker.log"]}),
        ("ai_label_check", {"post_id": POST, "authorship": "ai_assisted", "eu": True}),
        ("ai_label_check file", {"file": "in/campaign.json", "platform": ["tiktok"], "media": "in/manifest.json"}),
        ("calendar_gaps", {"account": "blue", "timezone": "Europe/Berlin", "start": "2026-11-02", "days": 7,
                           "slot": ["Mon@09:00"]}),
        ("distribution_plan", {"region": "japan", "goal": "awareness", "limit": 3, "date": "2026-11-02"}),
        ("account_route", {"platform": "bluesky"}),
        ("account_advisor region", {"region": "japan", "goal": "awareness", "existing": ["bluesky"]}),
        ("describe one", {"command": "campaign-check"}),
        ("insights now", {"now": "2026-11-02T10:00:00Z", "metric": "likes", "platform": "bluesky"}),
        ("eu_review_evidence now", {"now": "2026-11-02T10:00:00Z"}),
        ("platform_risk owned", {"now": "2026-11-02T10:00:00Z", "owned": ["site"]}),
        ("registry_age all", {"all": True, "as_of": "2026-11-02"}),
        ("social_web_plan accounts", {"accounts": "config/accounts.json", "site": "https://example.org"}),
    ]  # fmt: skip
    return [Made(name, name.split(" ")[0], arguments) for name, arguments in listed]


_SIMULATION = {"pairs": 4, "lift": 0.2, "noise": 0.1, "trials": 5}
# Arguments that both servers refuse before anything runs.
REFUSED = [
    Made("too long", "voice_check", {"text": "x" * 20_001}),
    Made("null", "voice_check", {"text": None}),
    Made("NUL", "voice_check", {"text": "a\0b"}),
    Made("unknown argument", "voice_check", {"text": "words", "nope": 1}),
    Made("withheld flag", "eu_review_evidence", {"include_individuals": True}),
    Made("missing", "trace", {}),
    Made("not a choice", "account_advisor", {"goal": "fame"}),
    Made("not a list", "account_advisor", {"existing": "bluesky"}),
    Made("boolean for a number", "experiment_simulate", {**_SIMULATION, "seed": True}),
    Made("flag as positional", "describe", {"command": "--help"}),
    *(
        Made(f"path {path}", "campaign_check", {"file": path})
        for path in ("../policy.toml", "/etc/passwd", "~/x", "-", "", "in/out.txt", "in/../../policy.toml")
    ),
]
# Arguments with which the original starts the tool, which then refuses them.
STRICTER = [
    Made("two of a group", "voice_check", {"text": "words", "post_id": "0000000000000000"}),
    Made("no such file", "campaign_check", {"file": "in/none.json"}),
    Made("positional with @", "describe", {"command": "@x"}),
]
