"""Secrets that are known by what stands around them: keys, addresses with passwords, headers, files, names. Data.

Read by the front for the anchors; the examples are run by a test. `[[…]]` marks what must go, `<charset:length>` what is
drawn at random (rule.CHARSETS, and pem, basic, uuid, b64).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Structure:
    """One kind of surroundings.

    id, kind, why as in rule.Rule; anchors: literals at which shapes.SHAPES[id] looks, none for what stands beside names.
    """

    id: str
    kind: str
    why: str
    hides: tuple[str, ...]
    leaves: tuple[str, ...]
    anchors: tuple[str, ...] = ()


# fmt: off
STRUCTURES: tuple[Structure, ...] = (
    Structure("private-key", "private-key", "A key file opens whatever trusts the key: whole, cut off, escaped, quoted, numbered.",
        ("a\n[[-----BEGIN RSA PRIVATE KEY-----\n<pem:8>\n-----END RSA PRIVATE KEY-----]]\nb", "k:\n[[-----BEGIN OPENSSH PRIVATE KEY-----\n<pem:5>]]",
         '{"key":"[[-----BEGIN PRIVATE KEY-----\\n<b64:64>\\n<b64:64>\\n-----END PRIVATE KEY-----]]\\n"}'),
        ('looks for "-----BEGIN PRIVATE KEY-----" at the start.\n', "-----BEGIN CERTIFICATE-----\n<pem:4>\n-----END CERTIFICATE-----"),
        ("-----BEGIN ", "---- BEGIN SSH2 ENCRYPTED PRIVATE")),
    Structure("private-key-end", "private-key", "The end of a key whose beginning was scrolled away.",
        ("[[<pem:6>]]\n-----END PRIVATE KEY-----\n",), ("the footer is -----END PRIVATE KEY-----\n",), ("-----END ",)),
    Structure("putty-key", "private-key", "The private half of a PuTTY key file.", ("Private-Lines: 4\n[[<pem:4>]]\nPrivate-MAC: <hex:64>\n",),
        ("Private-Lines: are counted\n",), ("Private-Lines: ",)),
    Structure("jwk", "private-key", "Private member of a JSON Web Key.", ('{"kty":"EC","crv":"P-256","d":"[[<dash:43>]]","x":"<dash:43>"}',),
        ('{"kty":"EC","crv":"P-256","x":"<dash:43>"}', '{"d":"<dash:43>"}'), tuple(f'"{name}":{blank}"' for name in ("d", "k", "p", "q", "dp", "dq", "qi") for blank in ("", " "))),
    Structure("jwt", "jwt", "A signed token is valid until it ends; whoever shows it is let in.",
        ("id: [[eyJhbGciOiJIUzI1NiJ9.eyJz<alnum:20>.<dash:43>]] end",), ("eyJhbGciOiJIUzI1NiJ9 alone", "a.b.c"), ("eyJ",)),
    Structure("url-password", "url-password", "Password in an address, of a database or a remote.",
        ("postgres://app:[[<alnum:16>]]@db:5432/app", "redis://:[[<alnum:12>]]@cache/0", "postgres%3A%2F%2Fapp%3A[[<alnum:12>]]%40db%2Fapp"),
        ("https://example.com:8443/path@v2", "ssh://git@github.com/a/b", "postgres://USER:PASSWORD@HOST/DB", "redis://:${PASS}@h"), ("://",)),
    Structure("login", "password", "user:password as curl and others take it.", ("curl -u admin:[[<alnum:12>]] https://x.io",),
        ("curl -u USERNAME:PASSWORD https://x.io", 'curl -u "$USER:$PASS" https://x.io'),
        (" -u ", " --user ", " --user=", " -U ", " -a ", " --proxy-user ")),
    Structure("flagged", "password", "Flags of programs that take a password as a word.",
        ("mysql -uroot -p[[<alnum:12>]] app", "redis-cli -h h -a [[<alnum:12>]] ping", "sshpass -p '[[<alnum:12>]]' ssh x"),
        ("mkdir -p build1/out2", "ssh -p 2222 host", "tar -a v1.tgz"), (" -p", " -a ", " -w ", " -P", " -passin ", " -passout ")),
    Structure("sql-password", "password", "Users that SQL makes.", ("CREATE USER a IDENTIFIED BY '[[<alnum:12>]]';",), ("IDENTIFIED BY '${PW}'", "PASSWORD('')"),
        ("IDENTIFIED BY '", "identified by '", "Identified By '", 'IDENTIFIED BY "', "_password BY '", "_password by '", "PASSWORD('")),
    Structure("dsn-password", "url-password", "Addresses of Go's MySQL driver.", ('dsn := "app:[[<alnum:12>]]@tcp(10.0.0.1:3306)/db"',),
        ("app@tcp(db:3306)/x", "USER:PASSWORD@tcp(HOST)/DB", "app:${DB_PASSWORD}@tcp(db)/x"), ("@tcp(", "@unix(")),
    Structure("oracle-password", "url-password", "Addresses of Oracle's thin driver.", ("jdbc:oracle:thin:scott/[[<alnum:12>]]@//db:1521/x",),
        ("jdbc:oracle:thin:@//db:1521/x", "jdbc:oracle:thin:USER/PASSWORD@db"), ("jdbc:oracle:thin:",)),
    Structure("setup-password", "password", "The first password of Jenkins.", ("use the following password to proceed to installation:\n\n[[<hex:32>]]\n",),
        ("to proceed to installation: read on\n",), ("proceed to installation:", "successfully reset.\nNew value:")),
    Structure("second-argument", "password", "Functions that take a user and a password.",
        ('HTTPBasicAuth("joe", "[[<alnum:12>]]")', "requests.get(url, auth=('joe', '[[<alnum:12>]]'))", 'DriverManager.getConnection("jdbc:x://h/d", "joe", "[[<alnum:12>]]")'),
        ('HTTPBasicAuth("joe", "password")', 'auth=("joe", os.environ["X"])', 'getConnection("jdbc:x://h/d")'),
        ("HTTPBasicAuth(", "HTTPDigestAuth(", "auth=(", "auth = (", "SetBasicAuth(", "NetworkCredential(", "smtp.login(", "server.login(",
         ".getConnection(", "new PDO(")),
    Structure("webhook", "webhook", "Addresses that are themselves the permission to post.",
        ("[[https://hooks.slack.com/services/T<upper:9>/B<upper:9>/<alnum:24>]]", "[[https://discord.com/api/webhooks/<digit:19>/<dash:68>]]"),
        ("https://hooks.slack.com/services/ is the start", "https://discord.com/api/webhooks/ID/TOKEN"),
        ("hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "webhook.office.com/webhookb2/")),
    Structure("pgpass", "password", "A line of .pgpass.", ("db.x.io:5432:app:svc:[[<alnum:12>]]\n", "*:*:*:postgres:[[<alnum:12>]]\n"),
        ("127.0.0.1:5432:5432", "a:*:b"), (":5432:", ":5433:", ":6432:", ":*:")),
    Structure("authorization", "bearer-token", "Authorization headers and their schemes.",
        ("Authorization: Bearer [[<alnum:32>]]", "'authorization': 'Token [[<hex:40>]]'", "Authorization: Basic [[<basic:1>]]"),
        ("Authorization: Bearer <token>", "Authorization: Bearer $TOKEN", "allow-headers: Authorization, Content-Type")),
    Structure("cookie", "cookie", "Session cookies.", ("Cookie: sessionid=[[<lower:32>]]; theme=dark", "Set-Cookie: sid=[[<hex:40>]]; Path=/"),
        ("Set-Cookie: theme=dark; Path=/", "Cookie: _ga=GA1.2.123456789.1234567890")),
    Structure("netrc", "password", "A .netrc file.", ("machine x.io\n  login joe\n  password [[letmein]]\n",), ("the machine and its login have a password policy\n",)),
    Structure("npmrc", "token", "A .npmrc file.", ("//registry.x.io/:_authToken=[[<hex:36>]]\n", "//x.io/:_password=[[<b64:24>]]\n"),
        ("//registry.x.io/:_authToken=${NPM_TOKEN}\n",)),
    Structure("pypirc", "password", "A .pypirc file.", ("[pypi]\nusername = joe\npassword = [[<alnum:14>]]\n",), ("[pypi]\nusername = __token__\n",)),
    Structure("docker-config", "token", "Docker's config.json.", ('{"auths":{"ghcr.io":{"auth":"[[<basic:1>]]"}}}',), ('{"auths":{"ghcr.io":{}}}',)),
    Structure("kube-config", "token", "Kubernetes: config files and secrets.", ("users:\n- user:\n    token: [[<alnum:40>]]\n", "data:\n  password: [[<basic:1>]]\n"),
        ("secretKeyRef:\n  name: db-credentials\n  key: password\n",)),
    Structure("connection-string", "password", "Connection strings of .NET, ODBC, Azure.",
        ("Server=db;User ID=sa;Password=[[<alnum:15>]];Encrypt=true", "AccountName=a;AccountKey=[[<b64:88>]];EndpointSuffix=x"),
        ("Server=db;Trusted_Connection=True",)),
    Structure("aws-pair", "aws-secret-key", "The secret that stands beside an AWS key id.", ("[[AKIA<upper:16>]],[[<alnum:40>]]\n",), ("AKIAIOSFODNN7EXAMPLE,x",)),
    Structure("discord-bot", "discord-token", "Bot tokens of Discord: no literal part but two dots.", ("bot [[M<alnum:23>.G<alnum:5>.<alnum:38>]] on",),
        ("Module.Method.Something_rather_long_here",)),
    Structure("encoded", "github-token", "Base64 and hex of text that holds a secret, also wrapped.", ("[[<encoded:1>]]",), ("<b64:64>", "<hex:64>")),
    Structure("named-password", "password", "Values beside names of passwords, in JSON, YAML, env, INI, shell, XML, logs, tables.",
        ("DB_PASSWORD=[[<alnum:12>]]", '{"password": "[[letmein]]"}', "password: [[<alnum:12>]]\n", "<password>[[<alnum:12>]]</password>",
         '{"name": "DB_PASSWORD", "value": "[[<alnum:12>]]"}', "--password [[<alnum:12>]] -v", '| DB_PASSWORD | [[<alnum:12>]] |', 'password is "[[<alnum:12>]]"'),
        ("password: null", "PASSWORD_MIN_LENGTH=12", "password=$DB_PASSWORD", '"login.password": "Passwort"', "the password is wrong",
         "password = get_password(user)", "def f(password: str = None) -> str:")),
    Structure("named-token", "token", "Values beside names of tokens and keys.",
        ("API_TOKEN=[[<alnum:24>]]", '"apiKey": "[[<alnum:24>]]"', "x-api-key: [[<hex:32>]]", "the api key is [[<alnum:24>]]", "id,api_token,n\n1,[[<alnum:24>]],2\n",
         'const apiKey: string = "[[<alnum:32>]]";', "setenv API_TOKEN [[<alnum:24>]]", "token%3D[[<alnum:24>]]"),
        ("max_tokens=4096", '{"NextToken": "<b64:64>"}', "cache_key=<hex:64>", "public_key: <b64:44>", "token_type=bearer", "secret_path=/run/secrets/db1",
         '"AWS::IAM::AccessKey": "<hex:16>"', "api_key = settings.API_KEY")),
    Structure("named-secret", "secret", "Values beside names of secrets.", ("client_secret=[[<alnum:32>]]", 'JWT_SECRET: "[[<alnum:32>]]"'),
        ("secret: tls-certificate-production", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf", 'secret "db-credentials" created')),
)
# fmt: on
