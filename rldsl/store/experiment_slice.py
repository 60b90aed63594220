"""The part of an experiment file that can change what is computed: its classes and what they refer to.

The experiments that the file declares are not part of it: their settings are in the ids of their trials.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from rldsl.store.source_text import Definition, Source


def computing_statements(source: Source, roots: Collection[str] = ()) -> list[ast.stmt]:
    """Classes, decorated functions, calls other than `main(...)`, the functions in `roots`, and what these refer to."""
    body = [] if source.tree is None else source.tree.body
    chosen = {index for index, one in enumerate(body) if _computes(one, roots)}
    while True:
        used = _names(body[index] for index in chosen)
        more = {index for index, one in enumerate(body) if index not in chosen and _bound(one) & used}
        if not more:
            return [body[index] for index in sorted(chosen)]
        chosen |= more


def _computes(statement: ast.stmt, roots: Collection[str]) -> bool:
    if isinstance(statement, Definition):
        decorated = bool(statement.decorator_list)
        return isinstance(statement, ast.ClassDef) or decorated or statement.name in roots
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and not _is_main(statement.value)


def _is_main(call: ast.Call) -> bool:
    function = call.func
    return (isinstance(function, ast.Name) and function.id == "main") or (
        isinstance(function, ast.Attribute) and function.attr == "main"
    )


def _names(statements: Iterable[ast.stmt]) -> set[str]:
    return {node.id for one in statements for node in ast.walk(one) if isinstance(node, ast.Name)}


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement defines; none for imports, whose modules are sources of their own."""
    if isinstance(statement, Definition):
        return {statement.name}
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return {node.id for node in stored}
