"""Renders the chart with the values on stdin and checks every document against the schema of Kubernetes, or checks a
compose file against the schema of compose. Prints the documents as JSON."""

import json
import pathlib
import sys

import jsonschema
import kubernetes_validate
import yaml
from gotpl.exts.helm import HelmTemplateEngine

KUBERNETES = "1.34"


def merged(base, over):
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}


def chart(folder, over):
    about = yaml.safe_load((folder / "Chart.yaml").read_text())
    values = merged(yaml.safe_load((folder / "values.yaml").read_text()), over)
    data = {
        "Values": values,
        "Chart": {"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
        "Release": {"Name": "port", "Namespace": "default", "Service": "Helm"},
    }
    sources = {it.name: it.read_text() for it in sorted((folder / "templates").iterdir())}
    rendered = HelmTemplateEngine(sources).render(
        {name: data for name in sources if name.endswith(".yaml")}
    )
    documents = [it for text in rendered.values() for it in yaml.safe_load_all(text) if it]
    for document in documents:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    return documents


def compose(file, schema):
    document = yaml.safe_load(file.read_text())
    jsonschema.validate(document, json.loads(pathlib.Path(schema).read_text()))
    return document


what, path, *rest = sys.argv[1:]
try:
    if what == "chart":
        result = chart(pathlib.Path(path), json.load(sys.stdin))
    else:
        result = compose(pathlib.Path(path), *rest)
except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
    sys.exit(f"{path}: {error.message} at {list(error.path)}")
json.dump(result, sys.stdout)
