"""Base classes of all specs: `Spec`, a frozen model, and `Kind`, an open family of models discriminated by `kind`."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from annotated_types import Ge, Gt, Le, Lt
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from rldsl.spec.errors import SpecError, from_validation, line_of_user, suggestion

SCHEMA = 2
"""Increased when the name or meaning of a field changes, so that old results are never mistaken for new ones."""

ID_LENGTH = 12
"""Hexadecimal digits of a trial's id."""

SCALARS = frozenset({float, int, bool, str, type(None)})


class NoHash:
    """Marks a field, in `Annotated[..., NoHash]`, that does not affect the results and is not part of the identity."""


class PerMember:
    """Marks a field, in `Annotated[..., PerMember]`, in which the members of a pack may differ."""


def whole(value: Any) -> Any:
    """Accepts `4e6` as an integer; rejects `4.5` and `True`."""
    if isinstance(value, bool):
        raise PydanticCustomError("whole_number", "should be a whole number")
    if isinstance(value, float):
        if not value.is_integer():
            raise PydanticCustomError("whole_number", "should be a whole number")
        return int(value)
    return value


MOST = 10**15
"""The largest whole number of a setting: every one of them is exact as a float."""
Whole: TypeAlias = Annotated[int, Strict(), Ge(-MOST), Le(MOST), BeforeValidator(whole)]
Natural: TypeAlias = Annotated[int, Strict(), Ge(0), Le(MOST), BeforeValidator(whole)]
Count: TypeAlias = Annotated[int, Strict(), Gt(0), Le(MOST), BeforeValidator(whole)]
Real: TypeAlias = Annotated[float, Strict()]
Positive: TypeAlias = Annotated[Real, Gt(0)]
NonNegative: TypeAlias = Annotated[Real, Ge(0)]
Fraction: TypeAlias = Annotated[Real, Ge(0), Le(1)]
Below1: TypeAlias = Annotated[Real, Ge(0), Lt(1)]
Flag: TypeAlias = Annotated[bool, Strict()]
Sizes: TypeAlias = tuple[Count, ...]


def is_ours(cls: type) -> bool:
    """Whether a class is defined in rldsl, not in user code."""
    return cls.__module__.partition(".")[0] == "rldsl"


def _of_rldsl(frame: FrameType) -> bool:
    """Whether a stack frame is of rldsl's own code, which also constructs specs from data."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "rldsl"


class Spec(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """A frozen model. Invalid constructor arguments raise a `SpecError` that names the user's line."""

    models: ClassVar[dict[str, type[Spec]]] = {}

    if not TYPE_CHECKING:  # type checkers use the signature that Pydantic derives from the fields

        def __init__(self, /, *args: Any, **data: Any) -> None:
            try:
                super().__init__(**self._by_name(args), **data)
            except ValidationError as error:
                raise SpecError(from_validation(error, type(self)), line_of_user()) from None
            except (TypeError, OverflowError) as error:
                raise SpecError(f"{type(self).__name__}: {error}", line_of_user()) from None
            if not _of_rldsl(sys._getframe(1)):
                self.declared_by_user()

        __init__.__pydantic_base_init__ = True  # validation from JSON does not call this __init__

    def declared_by_user(self) -> None:
        """Called after the user's own Python code has called the constructor; never for data."""

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, data: Any) -> Any:
        """Like `extra="forbid"`, but the error suggests valid names. A bare number sets the first positional field."""
        if data.__class__ in (int, float) and (names := cls._positional()):
            return {names[0]: data}
        if isinstance(data, dict) and not data.keys() <= cls.__pydantic_fields__.keys():
            for name in data.keys() - cls.model_fields.keys():
                valid = [field for field in cls.model_fields if field != "kind"]
                hint = {"name": repr(name), "hint": suggestion(str(name), valid)}
                raise PydanticCustomError("unknown_field", "has no field {name}; {hint}", hint)
        return data

    @classmethod
    def _by_name(cls, args: tuple[Any, ...]) -> dict[str, Any]:
        """Maps positional arguments to the fields declared with `kw_only=False`."""
        names = cls._positional()
        if len(args) > len(names):
            raise TypeError(f"takes {len(names)} positional arguments ({', '.join(names)}), got {len(args)}")
        return dict(zip(names, args, strict=False))

    @classmethod
    def _positional(cls) -> list[str]:
        return [name for name, field in cls.model_fields.items() if field.kw_only is False]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        known = Spec.models.setdefault(cls.__name__, cls)
        if is_ours(known) and not is_ours(cls):
            raise SpecError(f"{cls.__name__} is already a class of rldsl: choose another name", line_of_user())
        Spec.models[cls.__name__] = cls

    @classmethod
    def parse(cls, data: Any, root: str | None = None) -> Self:
        """Validates plain data (from JSON, an override, a plan); `root` names the object in error messages."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise SpecError(from_validation(error, cls, root)) from None
        except RecursionError:
            raise SpecError(f"{root or cls.__name__} is nested too deeply") from None
        except OverflowError:
            raise SpecError(f"{root or cls.__name__} contains a number that is too large") from None

    def with_(self, **changes: Any) -> Self:
        """A validated copy with some fields changed."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    def data(self) -> dict[str, Any]:
        """The spec as JSON-compatible data, defaults included."""
        return self.model_dump(mode="json")


class Kind(Spec, frozen=True):
    """The base of a family (agents, environments, ...): an open discriminated union over `kind`.

    A direct subclass is a family; its subclasses, including users' own, are registered when they are defined.
    A field annotated with the family accepts an instance, or data whose `kind` selects the class.
    """

    kind: str
    kinds: ClassVar[dict[str, type[Kind]]] = {}
    implementation: ClassVar[str] = ""
    """`module:name` of the class or function that implements this kind, imported only when it is needed."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if cls._is_family():
            cls.kinds = {}
            return
        default = cls.model_fields["kind"].default
        if not isinstance(default, str):
            return  # an intermediate class
        known = cls.kinds.setdefault(default, cls)
        if known is not cls and (known.__qualname__, _file(known)) != (cls.__qualname__, _file(cls)):
            owner = f"{known.__module__}.{known.__name__}"
            raise SpecError(f"{cls.__name__}: the kind {default!r} is taken by {owner}", line_of_user())
        cls.kinds[default] = cls

    @classmethod
    def _is_family(cls) -> bool:
        return any(base.__qualname__ == "Kind" for base in cls.__bases__)

    @classmethod
    def family(cls) -> type[Kind]:
        """The direct subclass of `Kind` that this class belongs to."""
        return next(base for base in cls.__mro__ if issubclass(base, Kind) and base._is_family())

    @classmethod
    def coerce(cls, value: Any) -> Any:
        """Expands the short form that fields of this family accept: the name of a kind means its defaults."""
        return {"kind": value} if isinstance(value, str) else value

    @classmethod
    def _dispatch(cls, value: Any) -> Kind:
        if isinstance(value, cls):
            return value
        value = cls.coerce(value)
        if isinstance(value, cls):
            return value
        name = cls.__name__.lower()
        if not isinstance(value, dict):
            raise PydanticCustomError("kind_type", "should be of the kind {name}", {"name": name})
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in cls.kinds:
            words = {"name": name, "hint": suggestion(str(kind), cls.kinds)}
            raise PydanticCustomError("kind_unknown", "names no known {name} ({hint})", words)
        return cls.kinds[kind].model_validate(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        if not cls._is_family():
            return handler(source)
        return core_schema.no_info_plain_validator_function(
            cls._dispatch,
            serialization=core_schema.plain_serializer_function_ser_schema(_dump),
            metadata={"family": cls.__name__},
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        if not cls._is_family():
            return handler(schema)
        choices = {kind: handler(model.__pydantic_core_schema__) for kind, model in cls.kinds.items()}
        mapping = {kind: choice["$ref"] for kind, choice in choices.items() if "$ref" in choice}
        return {"oneOf": list(choices.values()), "discriminator": {"propertyName": "kind", "mapping": mapping}}


def _dump(value: Kind) -> Any:
    return value.model_dump(mode="json")


def _file(cls: type) -> str | None:
    """The file that defines a class; an experiment file may be loaded under two module names."""
    return getattr(sys.modules.get(cls.__module__), "__file__", None)


@cache
def _hashed(cls: type) -> tuple[str, ...] | None:
    """The names of the fields that are part of a spec's identity; None if `cls` is not a spec class."""
    if not issubclass(cls, Spec):
        return None
    return tuple(sorted(name for name, field in cls.model_fields.items() if NoHash not in field.metadata))


@cache
def _omissible(cls: type[Spec]) -> dict[str, Callable[[Any], bool]]:
    """Fields with `exclude_if`: neither JSON nor the identity contains them where it holds, as before they existed."""
    return {name: field.exclude_if for name, field in cls.model_fields.items() if field.exclude_if is not None}


def _without_omitted(spec: Spec, names: tuple[str, ...]) -> tuple[str, ...]:
    omissible = _omissible(spec.__class__)
    if not omissible:
        return names
    return tuple(name for name in names if name not in omissible or not omissible[name](spec.__dict__[name]))


def nodes(spec: Spec) -> Iterator[Spec]:
    """A spec and all specs nested in it."""
    yield spec
    for _, value in spec:
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Spec):
                yield from nodes(item)


def identity(value: Any) -> Any:
    """The plain data that the id is computed from: all fields including defaults, except those marked `NoHash` and
    those that their `exclude_if` leaves out."""
    if value.__class__ in SCALARS:
        return value
    if (names := _hashed(value.__class__)) is not None:
        fields = value.__dict__
        return {
            name: item if (item := fields[name]).__class__ in SCALARS else identity(item)
            for name in _without_omitted(value, names)
        }
    if isinstance(value, tuple | list):
        return [identity(item) for item in value]
    return value


def digest(spec: Spec, length: int = ID_LENGTH) -> str:
    """The hash of a spec's identity and the schema version."""
    return hashlib.sha256(f"[{SCHEMA},{canonical(spec)}]".encode()).hexdigest()[:length]


def canonical(value: Any) -> str:
    """`identity(value)` as compact JSON with sorted keys, written directly because it is faster than `json.dumps`."""
    if (write := WRITERS.get(value.__class__)) is not None:
        return write(value)
    if (names := _hashed(value.__class__)) is not None:
        fields, names = value.__dict__, _without_omitted(value, names)
        return "{" + ",".join([f'"{name}":{canonical(fields[name])}' for name in names]) + "}"
    if isinstance(value, tuple | list):
        return f"[{','.join(map(canonical, value))}]"
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


WRITERS: dict[type, Callable[[Any], str]] = {
    float: repr,
    int: repr,
    bool: lambda value: "true" if value else "false",
    str: json.encoder.encode_basestring_ascii,
    type(None): lambda value: "null",
}


def unique(values: tuple[Any, ...], owner: str = "") -> tuple[Any, ...]:
    """Returns the values, or raises if one occurs twice."""
    seen = set()
    for value in values:
        key = value if value.__class__ in SCALARS else json.dumps(value, sort_keys=True)
        if key in seen:
            words = {"owner": f"{owner} " if owner else "", "value": repr(value)}
            raise PydanticCustomError("repeated", "{owner}holds {value} twice", words)
        seen.add(key)
    return values


Unique = AfterValidator(lambda values: unique(values))
