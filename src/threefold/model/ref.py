"""References: a strict parser and printer. A reference locates an object, it never authorises.

Grammar (ids and path segments percent-escaped, see `escape`):

    conv:<family>:conv_<conversation>.turn_<turn>.<body>      an object of the record
    <family>:[turn_]<turn>.<body>                             the same, where the conversation is known
    conv:<family>:turn_<turn>.<body>                          the same, where the conversation is known
    conv:conversation:<conversation>                          a whole conversation
    mem:record:<id>   cnv:<board>[@<revision>]   doc:<id>[#<chunk>]   <app>:<kind>:<id>
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_to_bytes

from threefold.errors import InvalidInput
from threefold.model.scope import check_id

Family = Literal["fi", "ar", "tc", "so", "ws", "su", "ev"]
FAMILIES: dict[str, str] = {
    "fi": "bytes",
    "ar": "records",
    "tc": "tool records",
    "so": "sources",
    "ws": "working summaries",
    "su": "range summaries",
    "ev": "accepted events",
}
_RESERVED_NAMESPACES = frozenset({"conv", *FAMILIES})
_OWN_NAMESPACES = frozenset({"all", "cnv", "doc", "mem", "thread"})
# The one reference into the record that names no turn.
_CONVERSATION = ("conv", "conversation")
_PATH_ROOTS = ("files", "user.attachments")
_BODY = {
    "ar": re.compile(r"[a-z][a-z_]*(\.[a-z][a-z_]*)*(\.[0-9]+)?"),
    "tc": re.compile(r"[A-Za-z0-9_-]+\.(call|result|notice)"),
    "so": re.compile(r"sources_pool(\[[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*\])?"),
    "ws": re.compile(r"conv\.working\.summary(\.anchors)?"),
    "su": re.compile(r"conv\.range\.summary(\.[0-9]+)?"),
    "ev": re.compile(r"events/[0-9]+"),
}
_NAMESPACE = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_ALL_PLAIN = re.compile("[A-Za-z0-9_~-]*")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~")


def escape(text: str, keep: str = "") -> str:
    """Percent-escape `text` so that no separator of the grammar is left.

    ASCII letters, digits, `-_~`, what is in `keep`, and printable characters of every other script stay as they are.
    """
    if _ALL_PLAIN.fullmatch(text):
        return text
    return "".join(
        c if c in _PLAIN or c in keep or (ord(c) > 127 and c.isprintable() and not c.isspace()) else _escaped(c)
        for c in text
    )


def _escaped(character: str) -> str:
    # Not urllib's `quote`, which never escapes the full stop, a separator here.
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def unescape(text: str, what: str, keep: str = "") -> str:
    """Undo `escape`.

    Raises:
        InvalidInput: for an unescaped separator, a broken escape, or bytes that are not UTF-8.
    """
    for position, c in enumerate(text):
        if c == "%":
            if not re.fullmatch("[0-9A-Fa-f]{2}", text[position + 1 : position + 3]):
                raise InvalidInput(f"reference: broken escape in the {what} {text!r}; write a percent sign as %25")
        elif escape(c, keep) != c:
            raise InvalidInput(f"reference: {c!r} in the {what} {text!r} must be escaped as {_escaped(c)}")
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"reference: the escapes in the {what} {text!r} are not UTF-8") from None


def escape_path(path: str) -> str:
    """Escape a relative file path segment by segment.

    Raises:
        InvalidInput: for an absolute path, an empty segment, `.` or `..`, a backslash or a NUL.
    """
    return "/".join(escape(segment, keep=".") for segment in check_path(path).split("/"))


def check_path(path: str) -> str:
    """Return `path` if it is relative, inside its folder and has no empty segment.

    Raises:
        InvalidInput: otherwise.
    """
    check_id(path, "path")
    for segment in path.split("/"):
        if segment in ("", ".", "..") or "\\" in segment:
            raise InvalidInput(f"path {path!r} must be relative, with plain segments joined by '/', and no '.' or '..'")
    return path


def check_name(namespace: str) -> str:
    """Return a namespace of objects outside the record.

    Raises:
        InvalidInput: it is none, or means something else at the beginning of a reference.
    """
    if not _NAMESPACE.fullmatch(namespace) or namespace in _RESERVED_NAMESPACES:
        raise InvalidInput(f"reference: {namespace!r} is no namespace; use lower-case letters, digits, '_', '-'")
    return namespace


def check_namespace(namespace: str) -> str:
    """Return a namespace that an app may publish.

    Raises:
        InvalidInput: it is none, or Threefold's own.
    """
    if not isinstance(namespace, str) or check_name(namespace) in _OWN_NAMESPACES:
        raise InvalidInput(f"namespace {namespace!r} is Threefold's own; choose another name, such as 'task'")
    return namespace


@dataclass(frozen=True, slots=True)
class ConvRef:
    """A reference into the record. `conversation` is None in a short form that was not given one.

    `body` is unescaped for `fi` (a root and a relative path) and literal for the other families.
    """

    family: str
    turn: str
    body: str
    conversation: str | None = None

    def __post_init__(self) -> None:
        check_id(self.turn, "turn")
        if self.conversation is not None:
            check_id(self.conversation, "conversation")
        if self.family not in FAMILIES:
            raise InvalidInput(f"reference: unknown family {self.family!r}; known are {', '.join(FAMILIES)}")
        if self.family == "fi":
            root, _, path = self.body.partition("/")
            if root not in _PATH_ROOTS:
                raise InvalidInput(f"reference: a file is under {' or '.join(_PATH_ROOTS)}, not {root!r}")
            check_path(path)
        elif not _BODY[self.family].fullmatch(self.body):
            raise InvalidInput(f"reference: {self.body!r} is no object of the family {self.family!r}")

    def __str__(self) -> str:
        """The canonical long form.

        Raises:
            InvalidInput: where the conversation is not known.
        """
        if self.conversation is None:
            raise InvalidInput("reference: the conversation is not known, so there is no long form")
        body = self.body
        if self.family == "fi":
            root, _, path = body.partition("/")
            body = f"{root}/{escape_path(path)}"
        return f"conv:{self.family}:conv_{escape(self.conversation)}.turn_{escape(self.turn)}.{body}"


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """A reference outside the record: curated memory, board, document, or an object of an app's namespace."""

    namespace: str
    id: str
    kind: str | None = None
    revision: int | None = None
    fragment: str | None = None

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        if (self.namespace, self.kind) != _CONVERSATION:
            check_name(self.namespace)
        needs_kind = self.namespace not in ("cnv", "doc")
        if needs_kind == (self.kind is None) or (self.kind is not None and not _NAMESPACE.fullmatch(self.kind)):
            raise InvalidInput(f"reference: write {self.namespace!r} references as {_shape(self.namespace)}")
        if self.namespace == "mem" and self.kind != "record":
            raise InvalidInput("reference: write 'mem' references as mem:record:<id>")
        if self.revision is not None and (self.namespace != "cnv" or self.revision < 0):
            raise InvalidInput("reference: only boards have a revision, a whole number from 0")
        if self.fragment is not None:
            check_id(self.fragment, "chunk")
            if self.namespace != "doc":
                raise InvalidInput("reference: only documents have chunks")

    def __str__(self) -> str:
        head = self.namespace if self.kind is None else f"{self.namespace}:{self.kind}"
        tail = "" if self.revision is None else f"@{self.revision}"
        tail += "" if self.fragment is None else f"#{escape(self.fragment)}"
        return f"{head}:{escape(self.id)}{tail}"


def _shape(namespace: str) -> str:
    return {"cnv": "cnv:<board>[@<revision>]", "doc": "doc:<id>[#<chunk>]", "mem": "mem:record:<id>"}.get(
        namespace, f"{namespace}:<kind>:<id>"
    )


def parse_ref(text: str, conversation: str | None = None) -> ConvRef | ObjectRef:
    """Parse a reference; `conversation` completes the short, turn-local forms.

    Raises:
        InvalidInput: for anything outside the grammar; the message says which part and how to write it.
    """
    if not isinstance(text, str) or not text:
        raise InvalidInput("reference: give a non-empty text such as conv:ar:conv_trip.turn_1.user.prompt")
    namespace, colon, rest = text.partition(":")
    if not colon or not rest:
        raise InvalidInput(f"reference: {text!r} has no namespace; write conv:…, mem:…, cnv:… or doc:…")
    if namespace == "conv":
        family, colon, rest = rest.partition(":")
        if not colon:
            raise InvalidInput(f"reference: {text!r} has no family; write conv:<family>:…")
        if family == _CONVERSATION[1]:
            return ObjectRef("conv", unescape(rest, "conversation"), kind=family)
        return _parse_conv(family, rest, conversation)
    if namespace in FAMILIES:
        return _parse_conv(namespace, rest, conversation, short=True)
    return _parse_object(namespace, rest)


def _parse_conv(family: str, rest: str, conversation: str | None, short: bool = False) -> ConvRef:
    if family not in FAMILIES:
        raise InvalidInput(f"reference: unknown family {family!r}; known are {', '.join(FAMILIES)}")
    if rest.startswith("conv_"):
        head, _, rest = rest.partition(".")
        conversation = unescape(head.removeprefix("conv_"), "conversation")
        short = False
    head, _, body = rest.partition(".")
    if not short and not head.startswith("turn_"):
        raise InvalidInput(f"reference: expected turn_<turn> before {head!r}")
    turn = unescape(head.removeprefix("turn_"), "turn")
    if family == "fi":
        root, _, path = body.partition("/")
        segments = path.split("/")
        if any(s in ("", ".", "..") for s in segments):
            raise InvalidInput(f"reference: the path {path!r} has an empty, '.' or '..' segment")
        plain = [unescape(s, "path", keep=".") for s in segments]
        if any("/" in s for s in plain):
            raise InvalidInput(f"reference: an escaped '/' in the path {path!r} would be another path")
        body = "/".join(["files" if root == "outputs" else root, *plain])
    return ConvRef(family, turn, body, conversation)


def _parse_object(namespace: str, rest: str) -> ObjectRef:
    if namespace == "cnv":
        name, at, revision = rest.partition("@")
        if at and not re.fullmatch("[0-9]{1,18}", revision):
            raise InvalidInput(f"reference: the revision {revision!r} must be a whole number")
        return ObjectRef("cnv", unescape(name, "board"), revision=int(revision) if at else None)
    if namespace == "doc":
        name, hash_, chunk = rest.partition("#")
        return ObjectRef("doc", unescape(name, "id"), fragment=unescape(chunk, "chunk") if hash_ else None)
    kind, colon, name = rest.partition(":")
    if not colon:
        raise InvalidInput(f"reference: write {namespace!r} references as {_shape(namespace)}")
    return ObjectRef(namespace, unescape(name, "id"), kind=kind)
