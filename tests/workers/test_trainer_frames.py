import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers import trainer_frames as frames
from workers.trainer_frames import Frame

FRAMES = st.lists(st.builds(Frame, st.sampled_from([frames.CHUNK, frames.BLOB, frames.END]), st.binary(max_size=50)))


def written(sent):
    stream = io.BytesIO()
    for frame in sent:
        frames.write(stream, *frame)
    return stream.getvalue()


@given(FRAMES, st.integers(1, 30))
def test_frames_come_out_as_they_went_in_however_the_pipe_cuts_them(sent, size):
    stream, assembler = written(sent), frames.Assembler()
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert [frame for chunk in chunks for frame in assembler.feed(chunk)] == sent


@given(FRAMES)
def test_read_is_the_inverse_of_write(sent):
    stream = io.BytesIO(written(sent))
    assert [frames.read(stream) for _ in sent] == sent


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_half_a_frame_is_the_end(cut):
    with pytest.raises(EOFError):
        frames.read(io.BytesIO(written([Frame(frames.BLOB, b"model")])[:cut]))
