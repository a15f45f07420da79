"""Places in which people and programs write secrets, and what looks like such a place and is none."""

from __future__ import annotations

import pytest

from runner.redaction.engine import Redactor
from runner.redaction.values import from_environment

PLAIN = Redactor(())
PW, TOKEN, LETTERS = "x7Kp2qLm9Q", "S4v4uTP9NZX3SIUJeVxhSh9kP3OiEbSm", "IRwFOVgyPLumZtQ"
UUID = "89d39457-1c2e-4f6a-9b7d-0a1b2c3d4e5f"

HIDES = [
    "kind: Secret\ndata:\n  password: eDdLcDJxTG05UWE=\n⟦eDdLcDJxTG05UWE=⟧",
    f"the password for bob is {PW}",
    f"the db password is: {PW}",
    f"A temporary password is generated for root@localhost: {PW}",
    f"ALTER USER 'root'@'%' IDENTIFIED WITH mysql_native_password BY '{PW}';",
    f"SET PASSWORD FOR 'x'@'%' = PASSWORD('{PW}');",
    f" id | username |  password  \n----+----------+------------\n  1 | bob      | {PW} \n",
    f"+----+----------------------------------+\n| id | api_key                          |\n+----+----------------------------------+\n|  1 | {TOKEN} |\n",
    f"key = process.env.FASTLY_API_TOKEN || '{TOKEN}'",
    f"key = os.environ.get('API_TOKEN') or '{TOKEN}'",
    f'var p = Environment.GetEnvironmentVariable("DB_PASSWORD") ?? "{PW}";',
    f"AWS Secret Access Key [None]: {TOKEN}",
    f'"db_password": {{"sensitive": true, "type": "string", "value": "{PW}"}}',
    f'variable "api_token" {{\n  type = string\n  default = "{UUID}"\n}}',
    f'{{"Name": "db_password", "Type": "SecureString", "Value": "{PW}"}}',
    f'~ password = "one7Kp2qLm" -> "{PW}"',
    f"DB_PASSWORD={LETTERS}\n",
    f"- **Password**: {PW}\n",
    f"| `API_KEY` | `{TOKEN}` |\n",
    f'  ["password"]=>\n  string(10) "{PW}"\n',
    f'Content-Disposition: form-data; name="password"\r\n\r\n{PW}\r\n',
    f"  password: &pw {PW}\n",
    f"password {PW}\n",
    f'options.username("app").password("{PW}")',
    f'Dim strPassword As String = "{PW}"',
    f'<wsse:Password Type="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordText">{PW}</wsse:Password>',
    f'{{"kty":"RSA","n":"abc","e":"AQAB","dq":"{TOKEN}"}}',
    f"SecretID:         {UUID}\n",
    f"Password for the [elastic] user successfully reset.\nNew value: {TOKEN}\n",
    f"hooks.slack.com/services/T12345678/B12345678/{'BvwoATnyRKzzRXTYogUOUDQB'}",
]
LEAVES = [
    "scipy/optimize/_highspy/_highs_options.cpython-311-x86_64-linux-gnu.so",
    "ii  dbus-user-session  1.14.10-1~deb12u1        amd64  simple interprocess messaging\n",
    "ii  passwd             1:4.13+dfsg1-1+deb12u1   amd64  change and administer passwords\n",
    "daemon:*:1:1:System Services:/var/root:/usr/bin/false\nroot:*:20228:0:99999:7:::\n",
    "credentials = f(\n    token,\n    certs_url=_GOOGLE_OAUTH2_CERTS_URL,\n    request,\n    clock_skew_in_seconds=0,\n)",
    "[Authorization Server Metadata](https://datatracker.ietf.org/doc/html/rfc8414)",
    "this.pass=true;return x",
    "allowedDuringThisPass=!1,25",
    "session: ServerHttp2Session",
    "token = SyntaxKind.EndOfFile",
    'keys = ["AWS_KEY","waitAtLeastOneReactRenderTask"]',
    "password\t[success=1 default=ignore]\tpam_unix.so obscure yescrypt",
    'docker run -v "$PWD":/app node npm test',
    "POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:?the password is missing}",
    "<password>@db.password@</password> password=@db.password@",
    "    password: password,\n    readonly: readonly,\n",
    '"""Load a library identified by \'name\'."""',
    "<password>proxypass</password>\n<host>proxy4.host.net</host>",
    ":type passphrase: :py:class:`bytes`",
    "hash_password('confirmation')",
]


@pytest.mark.parametrize("text", HIDES)
def test_a_secret_in_its_place_is_hidden(text: str) -> None:
    text, _, named = text.partition("⟦")
    secret = named.rstrip("⟧") or next(
        one for one in (TOKEN, LETTERS, UUID, PW, "BvwoATnyRKzzRXTYogUOUDQB") if one in text
    )
    shown, counts = PLAIN.text(text)
    assert secret not in shown
    assert sum(counts.values()) <= 2
    assert "withheld" not in counts


@pytest.mark.parametrize("text", LEAVES)
def test_what_is_no_secret_stays(text: str) -> None:
    assert PLAIN.text(text) == (text, {})


TABLES = {
    "results with a head": "name," + ",".join(f"t{n}" for n in range(20)) + "\n" + ("case," + "PASS,FAIL," * 10 + "\n") * 3000,
    "results": ("case," + "PASS,FAIL," * 10 + "\n") * 3000,
    "short tables": "name,token\na,b1\nc,d2\ne,f3\n\n" * 20_000,
    "words": "PASS FAIL PASS PASS " * 20_000,
    "lines": "PASS\n" * 100_000,
    "JSON": '["pass","pass","pass"],\n' * 20_000,
    "fields": "TOKEN,TOKEN," * 40_000,
    "counts": "pass: 7\n" * 60_000,
    "Markdown": ("| name | token |\n|---|---|\n" + "| aa | bb |\n" * 5 + "\n") * 20_000,
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_ordinary_tables_are_within_the_budget(name: str) -> None:
    text = TABLES[name]
    assert len(text) > 150_000
    assert PLAIN.text(text)[1] == {}


def test_names_of_desktops_and_helpers_are_no_secrets() -> None:
    environment = {
        "DESKTOP_SESSION": "gnome-xorg", "DOCKER_CREDENTIAL_HELPER": "ecr-login", "MY_SESSION": TOKEN,
    }  # fmt: skip
    assert [one.name for one in from_environment((), environment)] == ["MY_SESSION"]
