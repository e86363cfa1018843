"""What schemathesis needs to know to write bodies of our kinds: a query goes as it is."""

import schemathesis


@schemathesis.serializer("application/sparql-query")
def query(_context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
