"""What is sent to the API: plain values, without a transport."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar, Union, cast
from urllib.parse import quote
from uuid import uuid4

T = TypeVar("T")

QueryValue = Union[str, int, bool, datetime, Sequence[str], Mapping[str, str], None]

#: As `POST /v2/settle` takes it. Elsewhere the first one is a letter or a digit, which the service judges.
IDEMPOTENCY_KEY = re.compile(r"[A-Za-z0-9._:-]{16,128}")
CREATES = "POST"
#: A success without a body.
NO_CONTENT = 204
#: The answer, without a body, to a read that named the answer it has.
NOT_MODIFIED = 304


def parsed(text: bytes | str, objects: Callable[[list[tuple[str, Any]]], Any] = dict) -> Any:
    """The value of a JSON text. Raises `ValueError` if it is no JSON, or nested deeper than Python can read.

    `objects` makes the value of an object of its members.
    """
    try:
        return json.loads(text, object_pairs_hook=objects)
    except RecursionError:
        raise ValueError("The JSON is nested too deeply.") from None


@dataclass(frozen=True)
class Answer:
    """An answer of the API, read completely."""

    status: int
    #: Names are in lower case.
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """Raises `ValueError` if it is no JSON of an object or a list, which all the API's answers are."""
        value = None if self.status == NO_CONTENT else parsed(self.content)
        if self.status != NO_CONTENT and not isinstance(value, dict | list):
            raise ValueError("The answer is neither an object nor a list.")
        return value

    @property
    def retry_after(self) -> float | None:
        """The seconds that `Retry-After` asks for, as a number or as a date."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return float(text)
        try:
            moment = parsedate_to_datetime(text)
        except (TypeError, ValueError, OverflowError):
            return None
        aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        return max((aware - datetime.now(timezone.utc)).total_seconds(), 0.0)


@dataclass(frozen=True)
class Intent:
    """A creation that is ready to be sent: its idempotency key, and exactly the bytes that belong to the key.

    Store it before you send it, and create with it as often as you like, also from another process: the service carries
    it out once. It can contain card and account tokens, so store it like a secret.
    """

    method: str
    path: str
    idempotency_key: str
    body: str = field(repr=False)

    def to_json(self) -> str:
        """The form in which it can be stored. The other clients read the same form."""
        fields = {"method": self.method, "path": self.path, "idempotency_key": self.idempotency_key, "body": self.body}
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> Intent:
        """Reads what `to_json` wrote. Raises `ValueError` for anything else."""
        fields = parsed(text)
        names = {"method", "path", "idempotency_key", "body"}
        if not isinstance(fields, dict) or set(fields) != names or not all(isinstance(v, str) for v in fields.values()):
            raise ValueError("This is not a stored intent.")
        return cls(**fields)


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request and how its answer is read. `repeatable`: sending it twice has the effect of sending it once."""

    method: str
    path: str
    query: Mapping[str, QueryValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    intent: Intent | None = None
    repeatable: bool = False
    #: How long the service may hold the answer back, as the request asks for. It is repeated until its deadline then.
    held_s: float = 0.0
    #: The moment after which the answer is of no use, by the clock of the transport. It replaces the policy's total.
    deadline: float | None = None
    read: Callable[[Answer], T] = field(default=cast("Callable[[Answer], T]", Answer.json), repr=False)

    def reading(self, read: Callable[[Answer], Any], **headers: str) -> Call[Any]:
        """The same request, with another reading of its answer."""
        changed: Call[Any] = replace(cast("Call[Any]", self), read=read, headers={**self.headers, **headers})
        return changed


def path_of(template: str, **values: str) -> str:
    """The path with its parameters filled in. Raises `ValueError` for an empty one, which would be another path."""
    for name, value in values.items():
        if not isinstance(value, str) or value in ("", ".", ".."):
            raise ValueError(f"{name} must be an id")
    return template.format(**{name: quote(value, safe="") for name, value in values.items()})


def prepared(template: str, key: str | None, body: Mapping[str, object] | None = None, **values: str) -> Intent:
    """A creation with its key: the given one, or a new one."""
    chosen = str(uuid4()) if key is None else key
    if not IDEMPOTENCY_KEY.fullmatch(chosen):
        raise ValueError("An idempotency key has 16 to 128 characters: A-Z a-z 0-9 . _ : -")
    text = "" if body is None else encoded(body).decode()
    return Intent(CREATES, path_of(template, **values), chosen, text)


def call_of(
    method: str,
    template: str,
    body: Mapping[str, object] | None = None,
    *,
    query: Mapping[str, QueryValue] | None = None,
    repeatable: bool = False,
    **values: str,
) -> Call[T]:
    """A request without an idempotency key. A GET can always be repeated."""
    return Call(
        method,
        path_of(template, **values),
        query=query or {},
        body=None if body is None else encoded(body),
        repeatable=repeatable or method == "GET",
    )


def creation(intent: Intent, path: str) -> Call[T]:
    """Raises `ValueError` when the intent was prepared for another operation."""
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
    if intent.method != CREATES or not re.fullmatch(pattern, intent.path):
        raise ValueError(f"This intent is for {intent.method} {intent.path}, not for {CREATES} {path}.")
    return sending(intent)


def sending(intent: Intent) -> Call[T]:
    body = intent.body.encode() if intent.body else None
    return Call(
        intent.method,
        intent.path,
        headers={"Idempotency-Key": intent.idempotency_key},
        body=body,
        intent=intent,
        repeatable=True,
    )


def encoded(body: Mapping[str, object]) -> bytes:
    """JSON whose bytes depend on the fields alone, not on their order: an idempotency key is bound to these bytes."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain)
    return text.encode()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return timestamp(value)
    raise TypeError(f"{type(value).__name__} cannot be sent. Money is a string, such as '250.00'.")


def timestamp(moment: datetime, timespec: str = "milliseconds") -> str:
    """RFC 3339 in UTC. Raises `ValueError` for a moment without time zone, which could mean another one."""
    if moment.tzinfo is None:
        raise ValueError("A datetime needs a time zone, such as datetime.now(timezone.utc).")
    return moment.astimezone(timezone.utc).isoformat(timespec=timespec).replace("+00:00", "Z")


def query_pairs(query: Mapping[str, QueryValue]) -> list[tuple[str, str]]:
    """Absent values are left out, a sequence is repeated, and a mapping is `name[key]=value`."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if value is None:
            continue
        if isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif isinstance(value, datetime):
            # The service takes a bound as it is written. What was created in its millisecond was created before it.
            pairs.append((name, timestamp(value, "microseconds")))
        elif isinstance(value, (str, int)):
            pairs.append((name, str(value)))
        elif isinstance(value, Mapping):
            pairs += [(f"{name}[{key}]", one) for key, one in value.items()]
        else:
            pairs += [(name, one) for one in value]
    return pairs
