"""Layouts of models in a folder: each file is a version, or a version with a fault; nothing vanishes."""

import json
import os

import pytest

from app.services.models.model_folder import list_model_files

LIGHTGBM, XGBOOST, PICKLE = b"tree\nversion=v4\n", b'{"learner": {}}', b"\x80\x04."


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(json.dumps(content).encode() if isinstance(content, dict) else content)
    return root


def versions(root, name=None):
    """Path or fault, by model and version."""
    listed = list_model_files(root, name)
    found = {(file.model, file.version or file.label): file for file in listed}
    assert len(found) == len(listed)
    return {
        key: file.fault or str(file.path.resolve().relative_to(root.parent.resolve())) for key, file in found.items()
    }


SETTINGS = {"name": "iris", "parameters": {"version": "v0.1.0", "uri": "./iris.bst"}}
LAYOUTS = {
    "triton": (
        {"a/1/model.txt": LIGHTGBM, "a/2/xgboost.json": XGBOOST, "a/config.pbtxt": b'backend: "fil"', "a/l.txt": b"x"},
        {("a", 1): "r/a/1/model.txt", ("a", 2): "r/a/2/xgboost.json"},
    ),
    "tritons-own-name": (
        {"a/1/x.model": XGBOOST, "a/1/model.txt": LIGHTGBM, "a/config.pbtxt": b'default_model_filename: "x.model"'},
        {("a", 1): "r/a/1/x.model"},
    ),
    "versions-in-the-root": (
        {"1/model.onnx": b"\x08\x08", "3/model.onnx": b"\x08\x08"},
        {("r", 1): "r/1/model.onnx", ("r", 3): "r/3/model.onnx"},
    ),
    "a-number-as-a-name": ({"2024/1/model.txt": LIGHTGBM}, {("2024", 1): "r/2024/1/model.txt"}),
    "mlserver": (
        {"iris/model-settings.json": SETTINGS, "iris/iris.bst": LIGHTGBM},
        {("iris", 1): "r/iris/iris.bst"},
    ),
    "mlserver-without-uri": (
        {"m/model-settings.json": {"name": "m", "implementation": "os.system"}, "m/model.json": XGBOOST},
        {("m", 1): "r/m/model.json"},
    ),
    "mlserver-folder-as-uri": (
        {"m/model-settings.json": {"parameters": {"uri": "./data"}}, "m/data/any.ubj": XGBOOST},
        {("m", 1): "r/m/data/any.ubj"},
    ),
    "mlserver-in-the-root": (
        {"model-settings.json": {"name": "m"}, "model.bst": LIGHTGBM},
        {("m", 1): "r/model.bst"},
    ),
    "mlserver-versions": (
        {
            f"m/{version}/{name}": content
            for version in ("v0.9.0", "v0.10.0", "v7")
            for name, content in (
                ("model-settings.json", {"name": "m", "parameters": {"version": version}}),
                ("model.bst", LIGHTGBM),
            )
        },
        {("m", 1): "r/m/v0.9.0/model.bst", ("m", 2): "r/m/v0.10.0/model.bst", ("m", 7): "r/m/v7/model.bst"},
    ),
    "a-file-in-a-folder": ({"a/booster.bst": XGBOOST}, {("a", 1): "r/a/booster.bst"}),
    "nested": (
        {"team/one/1/model.txt": LIGHTGBM, "team/two/model.ubj": XGBOOST},
        {("one", 1): "r/team/one/1/model.txt", ("two", 1): "r/team/two/model.ubj"},
    ),
    "single-files": (
        {"a.txt": LIGHTGBM, "b.bst": XGBOOST, "README.md": b"", "LICENSE": b"", ".c.txt": LIGHTGBM},
        {("a", 1): "r/a.txt", ("b", 1): "r/b.bst"},
    ),
    "any-other-file": ({"a.joblib": PICKLE, "b": b"?"}, {("a", 1): "r/a.joblib", ("b", 1): "r/b"}),
}


@pytest.mark.parametrize(("files", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_layout_is_listed(tmp_path, files, expected):
    assert versions(write(tmp_path / "r", files)) == expected


FAULTS = {
    "empty": ({"a/.keep": b""}, {("a", 1): "holds no file"}),
    "empty-version": ({"a/1/model.txt": LIGHTGBM, "a/2/.keep": b""}, {("a", 2): "holds no file"}),
    "no-version": ({"a/1/model.txt": LIGHTGBM, "a/old/model.txt": LIGHTGBM}, {("a", "old"): "are named 1 to"}),
    "too-large": ({"a/1/model.txt": LIGHTGBM, f"a/{2**31}/model.txt": LIGHTGBM}, {("a", str(2**31)): "are named"}),
    "zero": ({"a/0/model.txt": LIGHTGBM}, {("a", "0"): "are named 1 to"}),
    "beside": ({"a/1/model.txt": LIGHTGBM, "a/new.txt": LIGHTGBM}, {("a", "new.txt"): "beside folders of versions"}),
    "several": ({"a/model.txt": LIGHTGBM, "a/model.ubj": XGBOOST}, {("a", 1): "several files: model.txt, model.ubj"}),
    "same-name": ({"a.txt": LIGHTGBM, "a.ubj": XGBOOST}, {("a", 1): "Several files are version 1"}),
    "same-name-deeper": ({"a.txt": LIGHTGBM, "x/a/1/model.txt": LIGHTGBM}, {("a", 1): "Several files are version 1"}),
    "same-number": ({"a/1/model.txt": LIGHTGBM, "a/v1/model.txt": LIGHTGBM}, {("a", 1): "Several files are version"}),
    "bad-name": ({"My.Model.txt": LIGHTGBM}, {("My.Model", 1): "Names of models"}),
    "no-json": ({"a/model-settings.json": b"{"}, {("a", 1): "model-settings.json: Invalid JSON"}),
    "no-object": ({"a/model-settings.json": b"[]"}, {("a", 1): "model-settings.json: Input should be an object"}),
    "bad-version": ({"a/model-settings.json": {"parameters": {"version": [1]}}}, {("a", 1): "parameters.version: "}),
    "bad-uri": ({"a/model-settings.json": {"parameters": {"uri": "s3://x/y"}}}, {("a", 1): "parameters.uri: Only"}),
    "bad-iterations": (
        {"a/model-settings.json": {"parameters": {"extra": {"iterations": 0}}}, "a/model.txt": LIGHTGBM},
        {("a", 1): "parameters.extra.iterations: String should match"},
    ),
    "broken-uri": ({"a/model-settings.json": {"parameters": {"uri": "http://[x"}}}, {("a", 1): "Invalid IPv6"}),
    "nul-uri": ({"a/model-settings.json": {"parameters": {"uri": "a\0b"}}}, {("a", 1): "does not exist"}),
    "absent-uri": ({"a/model-settings.json": {"parameters": {"uri": "none.bst"}}}, {("a", 1): "does not exist"}),
}


@pytest.mark.parametrize(("files", "expected"), FAULTS.values(), ids=FAULTS)
def test_what_fits_no_layout_has_a_fault(tmp_path, files, expected):
    found = versions(write(tmp_path / "r", files))
    for key, fault in expected.items():
        assert fault in found[key]


def test_links_and_names_without_text_have_faults(tmp_path):
    (tmp_path / "a.txt").symlink_to("nowhere")
    (tmp_path / "b.txt").symlink_to("b.txt")
    os.mkfifo(tmp_path / "c.txt")
    (tmp_path / "loop").symlink_to(tmp_path)
    name = os.fsdecode(b"caf\xe9.txt")
    (tmp_path / name).write_bytes(LIGHTGBM)
    found = {file.model: file.fault for file in list_model_files(tmp_path)}
    assert [found[model].split(" ", 1)[1] for model in "abc"] == ["leads nowhere.", "leads nowhere.", "is no file."]
    assert "Names of models" in found["caf?"]


def test_a_mounted_config_map_is_its_files(tmp_path):
    write(tmp_path, {"..2026_11_28/fraud.txt": LIGHTGBM})
    (tmp_path / "..data").symlink_to("..2026_11_28")
    (tmp_path / "fraud.txt").symlink_to("..data/fraud.txt")
    before = list_model_files(tmp_path)
    assert [(file.model, file.path.name) for file in before] == [("fraud", "fraud.txt")]
    write(tmp_path, {"..2026_11_29/fraud.txt": XGBOOST})
    (tmp_path / "next").symlink_to("..2026_11_29")
    (tmp_path / "next").rename(tmp_path / "..data")
    assert list_model_files(tmp_path) != before


NAMED = {
    "a-file": ({"model.bst": XGBOOST, "feature_names.json": {"names": []}}, {("m", 1): "r/model.bst"}),
    "a-file-of-any-name": ({"booster.ubj": XGBOOST, "classes.txt": b"a"}, {("m", 1): "r/booster.ubj"}),
    "versions": ({"1/model.txt": LIGHTGBM, "v2/model.txt": LIGHTGBM, "config.pbtxt": b""}, {("m", 1): "r/1/model.txt"}),
    "a-folder": ({"fraud/1/model.txt": LIGHTGBM}, {("m", 1): "r/fraud/1/model.txt"}),
    "settings": ({"model-settings.json": SETTINGS, "iris.bst": LIGHTGBM}, {("m", 1): "r/iris.bst"}),
    "nothing": ({".keep": b""}, {("m", 1): "holds no file"}),
    "a-pickle": ({"model.joblib": PICKLE}, {("m", 1): "r/model.joblib"}),
    "several": ({"a.txt": LIGHTGBM, "b.ubj": XGBOOST}, {("m", 1): "this one holds a, b", ("a", 1): "r/a.txt"}),
}


@pytest.mark.parametrize(("files", "expected"), NAMED.values(), ids=NAMED)
def test_one_model_has_the_name_of_the_environment(tmp_path, files, expected):
    found = versions(write(tmp_path / "r", files), "m")
    for key, value in expected.items():
        assert value in found[key]
