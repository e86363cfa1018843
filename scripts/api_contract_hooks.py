"""What schemathesis needs to know to write bodies of our kinds, which go as they are, and what would never end; and what
nobody without a key may get."""

import schemathesis


@schemathesis.serializer("application/sparql-query", "application/x-ndjson")
def query(_context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@schemathesis.hook
def before_load_schema(_context, described):
    """OpenAPI 3.1 describes a stream of events as one text. Schemathesis would hold each event to that."""
    for path in described["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict):
                for answer in operation.get("responses", {}).values():
                    answer.get("content", {}).get("text/event-stream", {}).pop("schema", None)


@schemathesis.hook
def before_call(_context, case, _kwargs):
    """An export of what passes ends with its flow, and no request of a test can wait for that: of each export what is
    stored is asked for, which ends. OpenAI's clients are told by 503 that a flow does not run, as by a server that is away,
    so they ask the one that does."""
    if case.operation.path.endswith("/export/{kind}"):
        case.query = {**(case.query or {}), "stored": "1"}
    for name in [name for name in case.headers or {} if name.lower() == "x-flow"]:
        case.headers[name] = "default"


def is_public(case):
    """What the description opens to everybody: a path, or an operation among those of a path."""
    described = case.operation.definition.raw
    if described.get("security") == []:
        return True
    asked = case.body.get("operation") if isinstance(case.body, dict) else None
    return asked in described.get("x-operations", {}).get("public", [])


@schemathesis.check
def nobody_is_let_in(_context, response, case):
    """Without a key everything else is refused. What cannot be understood may be refused for that."""
    if is_public(case) or 400 <= response.status_code < 500:
        return
    raise AssertionError(f"{case.method} {case.operation.path} without a key: {response.status_code}")
