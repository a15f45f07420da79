"""What a person is told to do, for what a host says about itself."""

from __future__ import annotations

import pytest

from runner import remedies
from runner.remedies import Facts


def test_apparmor_gets_a_profile_with_the_path_filled_in() -> None:
    text = remedies.remedy("mounts", Facts(apparmor="1", interpreter="/opt/x/python3.12"))
    assert "profile toolcage /opt/x/python3.12 flags=(unconfined)" in text
    assert "userns," in text
    assert "apparmor_parser" in text


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (Facts(debian="0"), "kernel.unprivileged_userns_clone=1"),
        (Facts(maximum="0"), "user.max_user_namespaces"),
        (Facts(container=True), "--security-opt systempaths=unconfined"),
        (Facts(apparmor="0", debian="1", maximum="96365"), "RestrictNamespaces="),
    ],
)
def test_each_setting_has_its_words(facts: Facts, words: str) -> None:
    assert words in remedies.remedy("namespaces", facts)


@pytest.mark.parametrize("step", ["landlock", "seccomp", "keyring", "attestation", "exec", "anything"])
def test_every_step_has_a_remedy(step: str) -> None:
    assert len(remedies.remedy(step, Facts())) > 20


def test_this_host_can_be_read() -> None:
    facts = remedies.look("/bin/sh")
    assert facts.maximum is None or facts.maximum.isdigit()
    assert facts.interpreter.startswith("/")
