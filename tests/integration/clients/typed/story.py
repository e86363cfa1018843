"""A client in Python, which openapi-python-client makes from the description of the endpoints. Prints what it saw as one
JSON object. Usage: python story.py <folder of the package> <URL>"""

import base64
import json
import sys
import time

sys.path.insert(0, sys.argv[1])

from typed_client import Client
from typed_client.api.flows import agent, document_rag
from typed_client.api.services import flow, librarian
from typed_client.models import (
    AgentReply,
    AgentRequest,
    Citation,
    DocumentMetadata,
    DocumentRagReply,
    DocumentRagRequest,
    Failed,
    FlowReply,
    FlowRequest,
    FlowRequestOperation,
    LibrarianReply,
    LibrarianRequest,
    LibrarianRequestOperation,
    Processing,
    ProcessingMetadata,
)

client = Client(base_url=sys.argv[2], timeout=60)


def good(reply, wanted):
    """A reply, which is of the type that is described."""
    assert isinstance(reply, wanted), reply
    return reply


def library(operation, **fields):
    request = LibrarianRequest(operation=LibrarianRequestOperation(operation), **fields)
    return good(librarian.sync(client=client, body=request), LibrarianReply)


def cited(citations):
    assert all(isinstance(one, Citation) for one in citations)
    return [{"n": one.n, "title": one.title, "page": one.page, "text": one.text} for one in citations]


flows = good(flow.sync(client=client, body=FlowRequest(operation=FlowRequestOperation.LIST_FLOWS)), FlowReply)
name = flows.flow_ids[0]
text = b"The Brennick clock of the valley was built by Ilse Maartens in 1731."
about = DocumentMetadata(id="urn:typed:py", kind="text/plain", title="The valley")
library("add-document", document_metadata=about, content=base64.b64encode(text).decode())
started = ProcessingMetadata(id="urn:typed:py:p", document_id="urn:typed:py", flow=name, collection="typed-py")
library("add-processing", processing_metadata=started)
status = None
for _ in range(600):
    listed = library("list-processing").processing_metadatas
    assert all(isinstance(one, Processing) for one in listed)
    status = next((one.status for one in listed if one.id == "urn:typed:py:p"), None)
    if status == "complete":
        break
    time.sleep(0.1)

query = "Who built the Brennick clock?"
asked = DocumentRagRequest(query=query, collection="typed-py", doc_limit=5)
rag = good(document_rag.sync(name, client=client, body=asked), DocumentRagReply)
told = good(agent.sync(name, client=client, body=AgentRequest(question=query, collection="typed-py")), AgentReply)
asked["doc-limits"] = 5
warned = good(document_rag.sync(name, client=client, body=asked), DocumentRagReply)
failed = good(agent.sync("nowhere", client=client, body=AgentRequest(question=query)), Failed)

print(
    json.dumps(
        {
            "flows": flows.flow_ids,
            "status": status,
            "rag": {"answer": rag.response, "citations": cited(rag.citations)},
            "agent": {"answer": told.answer, "citations": cited(told.citations)},
            "warnings": warned.warnings,
            "refused": failed.error,
        }
    )
)
