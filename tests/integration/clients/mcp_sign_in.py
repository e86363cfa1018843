"""Lets the official client of the Model Context Protocol, unmodified, sign its user in: it finds the authorization server, registers,
sends the user to the page, and uses the token that it gets for the code.

Arguments: address of the gateway, name and password of a user. Prints what it found, as JSON.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

URL, NAME, PASSWORD = sys.argv[1:]
# With a query, as users write it to name a workspace or a flow.
ENDPOINT = f"{URL}mcp?flow=default"
BACK = "http://127.0.0.1:7/callback"
FOUND = {"pages": 0}


class Storage:
    """What a client keeps, in memory."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """The user: opens the page, fills the form in, and is sent back."""

    back = ""

    async def opens(self, page):
        async with httpx2.AsyncClient(timeout=60) as http:
            shown = await http.get(page)
            FOUND["pages"] += 1
            FOUND["form"] = shown.status_code == 200 and 'type="password"' in shown.text
            parts = urlsplit(page)
            FOUND["for"] = parse_qs(parts.query).get("resource") == [ENDPOINT]
            origin = {"Origin": f"{parts.scheme}://{parts.netloc}", "Sec-Fetch-Site": "same-origin"}
            form = {"username": NAME, "password": PASSWORD}
            sent = await http.post(page, data=form, headers=origin)
            FOUND["sent"] = sent.status_code
            self.back = sent.headers.get("location", "")

    async def returns(self):
        FOUND["returned"] = self.back.startswith(f"{BACK}?")
        fields = {name: values[0] for name, values in parse_qs(urlsplit(self.back).query).items()}
        return AuthorizationCodeResult(code=fields["code"], state=fields["state"], iss=fields["iss"])


async def main():
    browser, storage = Browser(), Storage()
    about = OAuthClientMetadata(client_name="Black box", redirect_uris=[BACK], token_endpoint_auth_method="none")
    auth = OAuthClientProvider(
        server_url=ENDPOINT,
        client_metadata=about,
        storage=storage,
        redirect_handler=browser.opens,
        callback_handler=browser.returns,
    )
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        async with Client(streamable_http_client(ENDPOINT, http_client=http)) as client:
            tools = await client.list_tools()
            FOUND["tools"] = sorted(tool.name for tool in tools.tools)
    FOUND["token"] = storage.tokens.access_token
    FOUND["seconds"] = storage.tokens.expires_in


try:
    asyncio.run(main())
except BaseException as error:
    FOUND["error"] = repr(error)
    print(json.dumps(FOUND))
    raise
print(json.dumps(FOUND))
