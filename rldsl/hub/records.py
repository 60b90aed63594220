"""Whether the record of a session (`session.json`) belongs to the directory that it was found in."""

from __future__ import annotations

from rldsl.spec.errors import SpecError
from rldsl.spec.session import check_record
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir


def problem_of_record(session: SessionDir, directory: str) -> str | None:
    """Why a record is not that of the session in `directory`, relative to a run directory; None if it is.

    Nothing is imported: settings of a user's own classes are compared by the recorded JSON.
    """
    try:
        check_record(session.read_session(), directory)
    except SpecError as error:
        return error.sentence
    except StoreError as error:
        return str(error).replace(str(session.session), session.session.name)
    return None
