"""Faults of the parts of a request that fit its schema."""

from pydantic import model_validator

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.ml.kinds.job import Request
from app.services.jobs.partial_check import further_faults


class Whole(Request):
    first: int = 1
    second: int = 1

    @model_validator(mode="after")
    def _ordered(self):
        if self.first > self.second:
            raise ValueError("first is above second.")
        return self


def refuse(_request):
    raise InvalidRequest(faults=[Fault("/second", "Too small.")])


def test_parts_that_fit_are_checked():
    found = further_faults(Whole, {"first": "x", "second": 3}, [Fault("/first", "A number is needed.")], refuse)
    assert [fault.pointer for fault in found] == ["/second"]


def test_a_fault_of_the_whole_request_leaves_no_part_to_check():
    body = {"first": 2, "second": 1}
    assert further_faults(Whole, body, [Fault("", "first is above second.")], refuse) == []
