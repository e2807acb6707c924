"""What a named rule takes out of a text and what it leaves, and where of a turn it looks."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from secrets_of_tests import PEM, PERSONAL, SECRETS

import threefold
from threefold.errors import InvalidInput, Unavailable
from threefold.model.redaction import mark, marks
from threefold.model.turn import Attachment, PublishedFile, Replay, Submission, Summary, Turn
from threefold.ports import Redactor
from threefold.realms.conv.redacting import redact
from threefold.realms.redacting import Pass, distinct
from threefold.redaction import opening
from threefold.redaction.names import named
from threefold.redaction.opening import open_redactor
from threefold.redaction.spans import Span, private, replaced, views

LETTERS = "abcdefghijklmnopqrstuvwxyz"
AT = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def secrets() -> Redactor:
    pytest.importorskip("kingfisher_sdk", reason="the extra `redact` is not installed")
    return open_redactor("secrets")


@pytest.fixture(scope="module")
def personal() -> Redactor:
    pytest.importorskip("kingfisher_sdk", reason="the extra `redact` is not installed")
    return open_redactor("secrets+personal")


# What is found.


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize(
    "around",
    ["{}", "use {} please", "use {}, please", "It is {}.", "({})", "**{}**", "`{}`", "<key>{}</key>", 'k = "{}"',
     "凭证为{}，请保密", "キーは{}です", "Ключ: {}…", "https://x.example/?key={}&page=2"],
)  # fmt: skip
def test_a_secret_is_replaced_by_what_it_was(secrets: Redactor, kind: str, around: str) -> None:
    redacted = secrets(around.format(SECRETS[kind]))
    assert redacted == around.format(mark(kind))
    assert secrets(redacted) == redacted


def test_the_lesson_of_the_key_beside_chinese(secrets: Redactor) -> None:
    assert secrets("凭证为sk_" + "test_ABC123DEF456，谢谢") == "凭证为[redacted: stripe key]，谢谢"


@pytest.mark.parametrize("text", [PEM, PEM.replace("\n", "\\n"), PEM.rpartition("\n")[0]], ids=["lines", "json", "cut"])
def test_a_private_key_goes_whole(secrets: Redactor, text: str) -> None:
    assert secrets(f"before\n{text}\nafter") == "before\n[redacted: private key]\nafter"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('password = "correct-Horse-9battery"', 'password = "[redacted: secret]"'),
        ("DB_PASSWORD=kX93jfLw02Qz\n", "DB_PASSWORD=[redacted: secret]\n"),
        ("(client_secret: 4f9a0c7e2b81d6e5)", "(client_secret: [redacted: secret])"),
        ("The password is kX93jfLw02Qz.", "The password is [redacted: secret]."),
        ("my password is hunter2", "my password is [redacted: secret]"),
        ("Mein Passwort ist Geheim77", "Mein Passwort ist [redacted: secret]"),
        # Made up, or with a typing error: a checksum is not what makes it a secret.
        (f"ghp_{LETTERS}0123456789", "[redacted: github token]"),
        (f"github_pat_{LETTERS}0123456789", "[redacted: github token]"),
        (f"sk-proj-{LETTERS}", "[redacted: openai api key]"),
        (f"sk-ant-api03-{LETTERS}", "[redacted: anthropic api key]"),
        (f"sk-{LETTERS}0123456789", "[redacted: api key]"),
        (f"hf_{LETTERS}ABCDEFGH", "[redacted: hugging face token]"),
        (f"AIzaSyA{LETTERS}012345", "[redacted: google key]"),
        (f"aws_secret_access_key = {LETTERS}/EXAMPLE+{LETTERS[:5]}", "aws_secret_access_key = [redacted: aws key]"),
        ("Authorization: Bearer 9xK2mPq7Lw4Zt8Vn3", "Authorization: Bearer [redacted: authorization]"),
        (
            "postgresql://app:hunter2horse@db.internal/app",
            "postgresql://app:[redacted: credential uri]@db.internal/app",
        ),
        (f"{SECRETS['aws key']},wJ9a/bQ4+xT7kLm2{'PzR5uYc8' * 3}", "[redacted: aws key],[redacted: aws key]"),
        ("a <private>my salary</private> b", "a [redacted: private] b"),
        ("a <PRIVATE>x <private>y</private>\nz</Private> b", "a [redacted: private] b"),
    ],
)
def test_a_secret_by_its_name_or_by_the_word_of_the_writer(secrets: Redactor, text: str, left: str) -> None:
    assert secrets(text) == left
    assert secrets(left) == left


WORD = "hunter2hunter2"
# Of each language what tells a password, and what only talks of one.
NAMED = {
    "French": (
        ["Mot de passe : « {} »", "le mot de passe est {}, merci", "mdp={}", "phrase secrète: {}"],
        ["le mot de passe est trop court", "Mot de passe : au moins 8 caractères dont 2 chiffres"],
    ),
    "Spanish": (
        ["contraseña: {}", "La contraseña es {}.", "CONTRASEÑA={}", "contrasena: {}", "**Contraseña:** {} "],
        ["la contraseña es demasiado corta", "La clave es OAuth2", "contraseña: mínimo 12 caracteres"],
    ),
    "Portuguese": (
        ["senha: {}", "A senha é {}", "palavra-passe: {}", "db_senha={}"],
        ["a senha é obrigatória", "a senha e o usuario123456 mudaram", "resenha: veja2024abc"],
    ),
    "Italian": (
        ["la password è {}", "parola d'ordine: {}", "parola d’ordine: {}", "codice segreto: {}"],
        ["la password è troppo corta", "la parola d'ordine è semplicità"],
    ),
    "Dutch": (
        ["wachtwoord: {}", "Het wachtwoord is {}"],
        ["het wachtwoord is te kort", "Het geheim is python3000"],
    ),
    "Polish": (
        ["hasło: {}", "Hasło to {}", "haslo: {}", "kod dostępu: {}"],
        ["hasło jest za krótkie", "Hasło to podstawa", "the password to server01 is lost"],
    ),
    "Russian": (
        ["Пароль: {}", "мой пароль — {}", "пароль - «{}»", "пароль это {}", "кодовая фраза: `{}`"],
        ["Пароль слишком короткий", "пароль: минимум 12 символов", "пароль — это просто"],
    ),
    "Ukrainian": (
        ["пароль: {}", "Пароль це {}", "кодова фраза: {}"],
        ["пароль закороткий", "Пароль — це важливо"],
    ),
    "Turkish": (
        ["Şifrem: {}", "ŞİFRE: {}", "wifi şifresi: {}", "parolam şu: {}"],
        ["şifre çok kısa", "Şifre: en az 8 harf"],
    ),
    "Greek": (
        ["κωδικός πρόσβασης: {}", "Ο ΚΩΔΙΚΟΣ ΠΡΟΣΒΑΣΗΣ είναι {}", "συνθηματικό={}"],
        ["Ο κωδικός είναι πολύ μικρός", "το συνθηματικό είναι μικρό"],
    ),
    "Chinese": (
        ["密码：{}", "密码是{}，谢谢", "解压密码: {}", "口令为{}。", "密碼是：{}", "我的password是{}"],
        ["密码太短了", "密码是必填的，用户名是admin123456", "密码学：RSA2048bit", "口令为空"],
    ),
    "Japanese": (
        ["パスワード：{}", "パスワードは{}です", "パスワードは「{}」です"],
        ["パスワードが短すぎます", "パスワードは8文字以上で入力してください"],
    ),
    "Korean": (
        ["비밀번호: {}", "비밀번호는 {} 입니다", "암호는 {}입니다"],
        ["비밀번호가 너무 짧습니다", "암호화: AES256GCM"],
    ),
    "Arabic": (
        ["كلمة المرور: {}", "وكلمة السر هي {}", "كلمة السر: {}"],
        ["كلمة المرور قصيرة جدا", "كلمة السر هي الصبر"],
    ),
    "Hindi": (
        ["पासवर्ड: {}", "मेरा पासवर्ड {} है", "पासवर्ड है {}"],
        ["पासवर्ड बहुत छोटा है", "पासवर्ड reset123 से बदलें"],
    ),
    "Thai": (
        ["รหัสผ่าน: {}", "รหัสผ่านคือ{}นะ", "รหัสผ่าน คือ {}"],
        ["รหัสผ่านสั้นเกินไป", "รหัสผ่านคือสิ่งสำคัญ"],
    ),
}


@pytest.mark.parametrize("language", NAMED)
def test_a_password_by_its_name_in_other_languages(secrets: Redactor, language: str) -> None:
    told, talk = NAMED[language]
    for text in told:
        # With marks apart too, but for İ, whose dot no small letter has.
        for spelt in {text, unicodedata.normalize("NFD", text)} if "İ" not in text else {text}:
            assert secrets(spelt.format(WORD)) == spelt.format("[redacted: secret]")
            assert secrets(spelt.format("[redacted: secret]")) == spelt.format("[redacted: secret]")
    for text in talk:
        assert secrets(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "PIN: {}",
        "Le code PIN est {}.",
        "ПИН-код: {}",
        "银行PIN：{}",
        "暗証番号は{}です",
        "मेरा पिन {} है",
        "الرقم السري: {}",
    ],
)
def test_digits_are_a_pin_by_their_name(secrets: Redactor, text: str) -> None:
    for digits in ("4711", "48392017"):
        assert secrets(text.format(digits)) == text.format("[redacted: pin]")
    for other in ("12", "GPIO12_A", "2026-11-30", "4.711"):
        assert secrets(text.format(other)) == text.format(other)


@pytest.mark.parametrize("text", ["LED_PIN = 1300", "gpio.pin: 4096", "spin: 1234", "we pin to 2024", "pins: 4711"])
def test_other_digits_than_those_of_a_pin_stay(secrets: Redactor, text: str) -> None:
    assert secrets(text) == text


def test_a_name_of_a_secret_is_shown_as_long_as_it_is() -> None:
    for text in ("la contraseña es x", "密码：x", "İ: Пароль — «x»", "un PIN: 4"):
        assert len(named(text)) == len(text)
        assert named(text)[-1] == text[-1]
    assert named("密码：x") == "\x01\x01:x"
    assert views("密码：x, y") == ("   x, y", "   x  y", "\x01\x01:x, y", "\x01\x01:x  y")
    assert views("\x01: \x02: x") == (" :  : x",)


def test_the_key_of_an_object_says_that_its_value_is_secret(secrets: Redactor) -> None:
    done = Pass(secrets)
    given = {"user": "ann2ann2", "password": "kX93jfLw02Qz", "keys": {"api_key": ["9xK2mPq7Lw4Zt8Vn"]}, "n": 3}
    assert done.json(given) == {
        "user": "ann2ann2", "password": "[redacted: secret]", "keys": {"api_key": ["[redacted: secret]"]}, "n": 3,
    }  # fmt: skip
    assert done.counts == {"secret": 2}
    assert done.json({"contraseña": "kX93jfLw02Qz", "密码": ["9xK2mPq7Lw4Zt8Vn"], "PIN": "4711"}) == {
        "contraseña": "[redacted: secret]", "密码": ["[redacted: secret]"], "PIN": "[redacted: pin]",
    }  # fmt: skip


@pytest.mark.parametrize("kind", PERSONAL)
@pytest.mark.parametrize("around", ["{}", "to {}, please", "<{}>", "联系{}。", "({}).", "mailto:{}"])
def test_personal_data_is_replaced_where_that_was_asked_for(
    secrets: Redactor, personal: Redactor, kind: str, around: str
) -> None:
    text = around.format(PERSONAL[kind])
    assert secrets(text) == text
    assert personal(text) == around.format(mark(kind))
    assert personal(personal(text)) == personal(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("müller@example.de", "[redacted: email]"),
        ("a@example.org,b@example.org;c@example.org", ", ".join(["[redacted: email]"] * 3)),
        ("qty 4 4539148803436467 x", "qty 4 [redacted: card number] x"),
        ("3782 822463 10005", "[redacted: card number]"),
    ],
)
def test_personal_data_side_by_side(personal: Redactor, text: str, left: str) -> None:
    assert personal(text).replace(",[", ", [").replace(";[", ", [") == left


# What is left alone.

TALK = [
    "What is an API key, and where do I put my password? The secret is to rotate keys.",
    "550e8400-e29b-41d4-a716-446655440000", "session 0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 fixes it", "md5 d41d8cd98f00b204e9800998ecf8427e",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "ISBN 978-3-16-148410-0 and 9783161484100", "2026-11-30T10:00:22.123456Z, 30.11.2026, 20261130",
    'phone = "+1 (555) 010-9999"; x = 5550109999; MAX = 4294967295', "id 1764496822123456789",
    'password = os.environ["DB_PASSWORD"]', "api_key = settings.api_key", "token = get_token(user)  # read the token",
    "Authorization: Bearer <token>", "export OPENAI_API_KEY=sk-...", "password: ********",
    'password = "your-password-1234"', "api_key=YOUR_API_KEY", "Das Passwort: siehe Tresor. 密码：请见保险箱。",
    "postgresql://threefold@db.example/threefold", "postgresql://user:password@localhost/db",
    "conv:ar:conv_lisbon.turn_01a22b83fa9385d9e6108bc59644.turn.log", "toolu_01A09q90qw90lq917835lq9",
    "write it between `<private>` and `</private>`", "AWS_SECRET_ACCESS_KEY=… AWS_REGION=eu-central-1",
    '{"credentials": "path/to/file-1.json"}', "0.4539148803436467",
    'const secretKeyRef = "db-credentials-1"', '"max_tokens": 4096', "</private>, and the <private> tag",
    "-----BEGIN PRIVATE KEY----- is how a file begins that holds a key and nothing besides it, as everybody knows",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
]  # fmt: skip


@pytest.mark.parametrize("text", TALK)
def test_a_text_that_only_talks_of_secrets_stays_as_it_is(secrets: Redactor, text: str) -> None:
    assert secrets(text) == text


@pytest.mark.parametrize(
    "text", ["git@github.com:a/b.git", "postgresql://app@db.internal.net/x", "icon@2x.png", "4539148803436468",
             "a + 49 * 30901820", *(text for text in TALK if "555" not in text)],
)  # fmt: skip
def test_what_looks_like_personal_data_and_is_none_stays_as_it_is(personal: Redactor, text: str) -> None:
    assert personal(text) == text


# How.


def test_a_secret_of_a_long_text_is_found_wherever_it_stands(secrets: Redactor) -> None:
    key, filler = SECRETS["github pat"], "the quick brown fox and 狐狸 \n" * 200
    for length in (1 << 17, (1 << 17) - 20, (1 << 17) - (1 << 14), 300_000):
        text = (filler * 80)[:length]
        assert (
            secrets(f"{text} {key} {filler}{PEM}") == f"{text} [redacted: github pat] {filler}[redacted: private key]"
        )


def test_any_text_is_taken_and_threads_may_share_a_rule(personal: Redactor) -> None:
    odd = "\x00\ud800" + SECRETS["aws key"] + "\udfff \ufeff \U0001f600" + PERSONAL["email"]
    assert personal(odd) == "\x00\ud800[redacted: aws key]\udfff \ufeff \U0001f600[redacted: email]"
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(personal, [odd] * 200)) == {personal(odd)}


def test_spans_that_overlap_become_one_of_the_heaviest_kind() -> None:
    text = "0123456789"
    assert replaced(text, [Span(2, 5, "a"), Span(4, 7, "b", 1), Span(8, 9, "c")]) == "01[redacted: b]7[redacted: c]9"
    assert replaced(text, [Span(5, 6, "b"), Span(0, 10, "a")]) == "[redacted: a]"
    assert replaced(text, [Span(0, 5, "a"), Span(5, 10, "b")]) == "[redacted: a][redacted: b]"
    assert replaced(text, []) == text


def test_a_private_span_that_is_not_closed_ends_with_the_last_that_is() -> None:
    assert [(s.start, s.end) for s in private("<private>a <private>b</private> c")] == [(0, 31)]
    assert list(private("<private> a")) == []


def test_characters_keep_their_places_in_what_a_detector_sees() -> None:
    text = "凭证sk,müller\x00. e.g. <b>"
    for view in views(text):
        assert len(view) == len(text)
        assert view.isascii()
    assert views("plain") == ("plain",)


# Of a turn.


def hidden(text: str, name: str = "") -> str:
    """A rule for the tests of the walk: `qz…` is secret."""
    return " ".join("[redacted: word]" if word.startswith("qz") else word for word in text.split(" "))


def test_files_whose_names_become_the_same_are_still_apart_and_found_by_their_references() -> None:
    turn = Turn(
        "c", "t", AT, AT,
        attachments=(Attachment("qz1", b"1", AT), Attachment("qz2", b"2", AT)),
        files=tuple(PublishedFile(path, path.encode(), AT) for path in ("a/qz1", "a/qz2", "b", "a/qz1")),
        summary=Summary("s", AT, refs=("conv:fi:conv_c.turn_t.files/a/qz2", "fi:t.files/b", "see qz", "mem:record:qz")),
    )  # fmt: skip
    done = redact(turn, hidden)
    assert [file.path for file in done.files] == [
        "a/[redacted: word]",
        "a/[redacted: word]-2",
        "b",
        "a/[redacted: word]",
    ]
    assert [file.data for file in done.files] == [b"a/qz1", b"a/qz2", b"b", b"a/qz1"]
    assert done.summary is not None
    assert done.summary.refs == (
        "conv:fi:conv_c.turn_t.files/a/%5Bredacted%3A%20word%5D-2",
        "fi:t.files/b",
        "see [redacted: word]",
        "mem:record:qz",
    )


def test_a_title_that_ends_within_a_secret_does_not_tell_its_half() -> None:
    def whole(text: str, name: str = "") -> str:
        return text.replace("secret-in-full", mark("word"))

    def titled(title: str) -> str | None:
        said = (Submission("prompt", "\n the secret-in-full of it\nmore", AT),)
        return redact(Turn("c", "t", AT, AT, title=title, submissions=said), whole).title

    assert titled("the secret-in…") == "the [redacted: word] of it"
    assert titled("the…") == "the…"
    assert titled("another, secret-in-full") == "another, [redacted: word]"


def test_keys_of_objects_stay_apart_and_what_is_no_text_stays() -> None:
    done = Pass(hidden)
    given = {"qz1": 1, "qz2": [None, True, 2.5, ("qz",)], "c": {"d": "qz"}}
    assert done.json(given) == {
        "[redacted: word]": 1, "[redacted: word]-2": [None, True, 2.5, ["[redacted: word]"]],
        "c": {"d": "[redacted: word]"},
    }  # fmt: skip
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidInput, match="deeply"):
        done.json(deep)
    assert distinct(["a.txt", "a.txt", "b/c.d/e", "b/c.d/e"]) == ["a.txt", "a-2.txt", "b/c.d/e", "b/c.d/e-2"]


def test_a_turn_is_redacted_once_and_counted_once() -> None:
    replay = Replay(events=({"type": "chat.step", "data": "qz"},), streams=({"marker": "canvas", "text": "a qz"},))
    turn = Turn("qz", "qz", AT, AT, submissions=(Submission("prompt", "qz qz", AT, author="qz"),), replay=replay)
    done = redact(turn, hidden)
    assert (done.conversation, done.id) == ("qz", "qz")
    assert done.redacted == {"word": 5}
    assert redact(done, hidden) == done
    assert redact(turn, None) is turn


def test_marks_are_counted_by_kind() -> None:
    assert marks(f"{mark('a')} {mark('b')}{mark('a')}", mark("c"), "[redacted]") == {"a": 2, "b": 1, "c": 1}


# Which rule.


def test_a_rule_is_named_or_the_hosts_own(tmp_path: Path) -> None:
    for wrong in ("everything", 7, ""):
        with pytest.raises(InvalidInput, match=r"secrets\+personal"):
            threefold.open(":memory:", embedder=None, background=False, redact=wrong)
    own = open_redactor(str.upper)
    assert own("abc", "name") == "ABC"
    with pytest.raises(InvalidInput, match="must return text"):
        open_redactor(lambda text: None)("abc")


@pytest.mark.parametrize("missing", ["kingfisher_sdk", "phonenumbers"])
def test_a_rule_that_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(Unavailable, match=r"threefold\[redact\]"):
        threefold.open(":memory:", embedder=None, background=False, redact="secrets")


def test_a_detector_that_fails_keeps_the_turn_from_being_recorded(
    secrets: Redactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def scan(self, text: str) -> list:
            raise RuntimeError(text)

    monkeypatch.setattr("threefold.redaction.detecting._scanner", lambda personal: Broken())
    with pytest.raises(Unavailable, match="RuntimeError") as caught:
        secrets("something secret")
    assert "something" not in str(caught.value)


def test_a_memory_says_what_was_redacted_in_it() -> None:
    with threefold.open(":memory:", embedder=None, background=False, redact=hidden) as db:
        made = db.user("ann").mem.remember("a qz", context="qz b", metadata={"k": "qz"})
        assert (made.memory, made.redacted) == ("a [redacted: word]", {"word": 3})
