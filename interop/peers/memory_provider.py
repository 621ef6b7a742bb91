"""An authorization server in memory for both versions of the Python SDK. Its user agrees to everything."""

import secrets
import time

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthToken

SCOPES = ["mcp:read"]


def settings(port):
    origin = f"http://127.0.0.1:{port}"
    return AuthSettings(
        issuer_url=origin,
        resource_server_url=f"{origin}/mcp",
        required_scopes=SCOPES,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES),
        revocation_options=RevocationOptions(enabled=True),
    )


class MemoryProvider(OAuthAuthorizationServerProvider):
    def __init__(self):
        self.clients, self.codes, self.refreshes, self.tokens = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or SCOPES,
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refreshes[refresh_token.token]
        return self.issue(client, scopes, refresh_token.resource)

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        self.refreshes.pop(token.token, None)
        self.tokens.pop(token.token, None)

    def issue(self, client, scopes, resource):
        granted = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        # Our client refreshes such a token before it is used again.
        self.tokens[access] = AccessToken(token=access, expires_at=int(time.time()) + 60, **granted)
        self.refreshes[refresh] = RefreshToken(token=refresh, **granted)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=0, scope=" ".join(scopes))
