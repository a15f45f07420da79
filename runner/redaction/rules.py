"""Token formats as data: an anchor literal, the characters that follow it, and what they must look like.

Read by the front. Nothing here acts, compiles or holds a secret. A rule never is a regular expression that is
searched: an anchor is found by one multi-literal pass, then one run of a single character class is measured at
that place, which keeps the cost linear on every input.
"""

from __future__ import annotations

from dataclasses import dataclass

# Names of the character classes a run may be made of. Values are the inside of a bracket expression.
CHARSETS: dict[str, str] = {
    "alnum": "A-Za-z0-9",
    "word": "A-Za-z0-9_",
    "dash": "A-Za-z0-9_-",
    "dot": "A-Za-z0-9_.-",
    "base64": "A-Za-z0-9+/=_-",
    "path": "A-Za-z0-9_/.-",
    "hex": "0-9a-f",
    "hexdash": "0-9a-f-",
    "upper": "A-Z0-9",
    "lower": "a-z0-9",
    "money": "A-Za-z0-9$_",
    "tilde": "A-Za-z0-9_.~-",
    "digit": "0-9",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One token format.

    kind      word in the placeholder and in the counts: [REDACTED:kind].
    anchors   case-sensitive literals; the token starts at the anchor (see `before`).
    charset   name in CHARSETS of the run after the anchor; the whole run belongs to the token.
    least     fewest characters of the run; most: reject longer runs (0 = any length).
    bounded   the byte before the anchor and the byte after the run must not be alphanumeric. For anchors that are
              short or look like words; distinctive anchors match anywhere.
    need      classes that the run must contain: "d" digit, "l" lower case, "u" upper case.
    before    (charset, least, most): characters in front of the anchor that belong to the token.
    """

    kind: str
    anchors: tuple[str, ...]
    charset: str
    least: int
    most: int = 0
    bounded: bool = False
    need: str = ""
    before: tuple[str, int, int] | None = None


TOKEN_RULES: tuple[Rule, ...] = (
    # Code hosts and package registries
    Rule("github-token", ("ghp_", "gho_", "ghu_", "ghr_"), "word", 20, need="d"),
    Rule("github-token", ("ghs_",), "dot", 20, need="d"),  # newer app tokens carry a JWT after the id
    Rule("github-token", ("github_pat_",), "word", 20),
    Rule("gitlab-token", ("glpat-", "glrt-", "gldt-", "glptt-", "glcbt-", "glsoat-", "glimt-"), "dot", 16),
    Rule("bitbucket-token", ("ATBB", "ATCTT3"), "base64", 24, bounded=True, need="d"),
    Rule("atlassian-token", ("ATATT3",), "base64", 60),
    Rule("npm-token", ("npm_",), "alnum", 30, need="d"),
    Rule("pypi-token", ("pypi-AgEI",), "dash", 50),
    Rule("rubygems-token", ("rubygems_",), "hex", 32, need="d"),
    Rule("crates-token", ("cio",), "alnum", 32, 32, bounded=True, need="du"),
    Rule("nuget-key", ("oy2",), "lower", 43, 43, bounded=True, need="d"),
    Rule("clojars-token", ("CLOJARS_",), "lower", 40, need="d"),
    Rule("docker-token", ("dckr_pat_", "dckr_oat_"), "dash", 20),
    # Clouds
    Rule("aws-key-id", ("AKIA", "ASIA", "ABIA", "ACCA"), "upper", 16, 20, bounded=True),
    Rule("aws-bedrock-key", ("ABSK",), "base64", 100, bounded=True, need="d"),
    Rule("google-api-key", ("AIza",), "dash", 30, need="d"),
    Rule("google-oauth-token", ("ya29.",), "dot", 40, need="d"),
    Rule("google-client-secret", ("GOCSPX-",), "dash", 24),
    Rule("azure-client-secret", ("Q~",), "tilde", 30, 40, need="d", before=("alnum", 3, 8)),
    Rule("alibaba-key-id", ("LTAI",), "alnum", 16, 26, bounded=True, need="lu"),
    Rule(
        "digitalocean-token",
        (
            "dop_v1_",
            "doo_v1_",
            "dor_v1_",
        ),
        "hex",
        40,
    ),
    Rule("cloudflare-token", ("cfut_", "cfat_", "cfk_"), "word", 32, need="d"),
    Rule("cloudflare-origin-key", ("v1.0-",), "hexdash", 100, bounded=True),
    Rule("heroku-key", ("HRKU-",), "dash", 32),
    Rule("netlify-token", ("nfp_", "nfc_"), "alnum", 32, need="d"),
    Rule("vercel-token", ("vcp_", "vci_", "vca_", "vcr_", "vck_"), "alnum", 24, need="d"),
    Rule("flyio-token", ("fm2_", "FlyV1 fm"), "base64", 60),
    Rule("databricks-token", ("dapi",), "hexdash", 32, 34, bounded=True, need="d"),
    Rule("doppler-token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim."), "dot", 32, need="d"),
    Rule("vault-token", ("hvs.", "hvb.", "hvr."), "dash", 24, need="d"),
    Rule("terraform-token", (".atlasv1.",), "base64", 50, before=("alnum", 10, 20)),
    Rule("pulumi-token", ("pul-",), "hex", 40, 40, bounded=True),
    Rule("planetscale-token", ("pscale_pw_", "pscale_tkn_", "pscale_oauth_"), "dot", 30),
    Rule("supabase-key", ("sbp_", "sb_secret_"), "word", 30, need="d"),
    Rule("tailscale-key", ("tskey-",), "dash", 24, need="d"),
    # Artificial intelligence
    Rule("anthropic-key", ("sk-ant-",), "dash", 24, need="d"),
    Rule("openai-key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), "dash", 24, need="d"),
    Rule("openrouter-key", ("sk-or-v1-",), "hex", 32),
    Rule("openai-key", ("sk-",), "dash", 20, bounded=True, need="dul"),
    Rule("huggingface-token", ("hf_", "api_org_"), "alnum", 30, bounded=True, need="ul"),
    Rule("groq-key", ("gsk_",), "alnum", 40, need="d"),
    Rule("replicate-token", ("r8_",), "alnum", 30, bounded=True, need="d"),
    Rule("perplexity-key", ("pplx-",), "alnum", 32),
    Rule("xai-key", ("xai-",), "alnum", 60, bounded=True),
    Rule("langsmith-key", ("lsv2_pt_", "lsv2_sk_"), "word", 32),
    # Messaging and mail
    Rule(
        "slack-token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe.", "xoxe-", "xoxc-", "xoxd-"),
        "dot",
        12,
        need="d",
    ),
    Rule("slack-token", ("xapp-",), "dash", 24, need="d"),
    Rule("slack-webhook", ("hooks.slack.com/services/", "hooks.slack.com/workflows/"), "path", 20, need="d"),
    Rule(
        "discord-webhook", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"), "path", 40, need="d"
    ),
    Rule("telegram-token", (":AA",), "dash", 30, 40, need="lu", before=("digit", 8, 12)),
    Rule("twilio-key", ("SK",), "hex", 32, 32, bounded=True, need="d"),
    Rule("sendgrid-key", ("SG.",), "dot", 40, bounded=True, need="d"),
    Rule("mailgun-key", ("key-",), "hex", 32, 32, bounded=True, need="d"),
    Rule("mailchimp-key", ("-us",), "digit", 1, 2, before=("hex", 32, 32)),
    # Payments and commerce
    Rule("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), "alnum", 16, need="d"),
    Rule("stripe-webhook-secret", ("whsec_",), "base64", 24, need="d"),
    Rule("square-token", ("EAAA",), "dash", 55, 64, bounded=True, need="d"),
    Rule("square-secret", ("sq0csp-", "sq0atp-"), "dash", 20),
    Rule("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), "hex", 32),
    Rule("braintree-token", ("access_token$production$", "access_token$sandbox$"), "money", 32),
    Rule("shippo-token", ("shippo_live_", "shippo_test_"), "hex", 32),
    Rule("easypost-key", ("EZAK", "EZTK"), "alnum", 50, 60, bounded=True, need="dl"),
    Rule("duffel-token", ("duffel_live_", "duffel_test_"), "dash", 32),
    Rule("facebook-token", ("EAAB", "EAAC", "EAAG", "EAAM"), "alnum", 80, bounded=True, need="d"),
    # Work tools and observability
    Rule("linear-key", ("lin_api_", "lin_oauth_"), "alnum", 32),
    Rule("notion-token", ("ntn_",), "alnum", 40, bounded=True, need="d"),
    Rule("airtable-token", ("pat",), "dot", 79, 79, bounded=True, need="d"),
    Rule("postman-key", ("PMAK-",), "hexdash", 40),
    Rule("figma-token", ("figd_",), "dash", 32),
    Rule("contentful-token", ("CFPAT-",), "dash", 32),
    Rule("typeform-token", ("tfp_",), "dash", 40, need="d"),
    Rule("dropbox-token", ("sl.u.", "sl.B"), "dash", 60, bounded=True, need="d"),
    Rule("hubspot-token", ("pat-na1-", "pat-na2-", "pat-eu1-"), "hexdash", 32),
    Rule("mapbox-secret", ("sk.eyJ",), "dot", 40),
    Rule("grafana-token", ("glsa_", "glc_"), "base64", 32, need="d"),
    Rule("newrelic-key", ("NRAK-",), "upper", 20),
    Rule("sentry-token", ("sntryu_", "sntrys_"), "base64", 32),
    Rule("dynatrace-token", ("dt0c01.",), "dot", 60),
    Rule("sonar-token", ("sqp_", "squ_", "sqa_"), "hex", 40),
    Rule("sourcegraph-token", ("sgp_",), "word", 40, need="d"),
    Rule("buildkite-token", ("bkua_",), "hex", 40),
    Rule("circleci-token", ("CCIPAT_", "CCIPRJ_"), "dash", 40),
    Rule("artifactory-key", ("AKCp",), "alnum", 60, bounded=True),
    Rule("launchdarkly-key", ("sdk-", "mob-"), "hexdash", 36, 36, bounded=True, need="d"),
    Rule("prefect-key", ("pnu_",), "lower", 32, need="d"),
    Rule("adafruit-key", ("aio_",), "alnum", 24, 32, bounded=True, need="d"),
    Rule("readme-key", ("rdme_",), "lower", 40),
    Rule("infracost-key", ("ico-",), "alnum", 32, 32, bounded=True, need="d"),
    Rule("frameio-token", ("fio-u-",), "dash", 40),
    # Secret stores and encryption
    Rule("onepassword-token", ("ops_eyJ",), "base64", 80),
    Rule("age-key", ("AGE-SECRET-KEY-1",), "upper", 40),
)

# Anchors whose surroundings are verified by code: see engine.SHAPES.
SHAPE_ANCHORS: dict[str, tuple[str, ...]] = {
    "private-key": ("-----BEGIN ",),
    "private-key-end": ("-----END ",),
    "jwt": ("eyJ",),
    "url-password": ("://", "%3A%2F%2F", "%3a%2f%2f"),
    "basic-credentials": (" -u ", " --user "),
}

# Lower-case words whose neighbourhood may hold "name = value". One must occur in every secret name (keys.py).
KEY_WORDS: tuple[str, ...] = (
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "auth",
    "cookie",
    "session",
    "bearer",
    "basic",
    "_pat",
    "-pat",
)

# Values that are examples or gaps wherever they occur inside a token.
EXAMPLE_MARKS: tuple[bytes, ...] = (b"example", b"your_", b"your-", b"placeholder")
