// An OpenID provider, unmodified, on a port of its own: `node oidc_provider.mjs NODE_MODULES`. Says its address; a line
// `rotate` on standard input gives it other keys. Ends with its standard input.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/`);
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));

// Who comes in, by the roles that the provider says of them.
const clients = {
  ada: { roles: ["staff"], tenant: "default", name: "Ada" },
  bob: { roles: ["editors", "staff"], tenant: "default" },
  eve: { roles: ["visitors"], tenant: "default" },
  far: { roles: ["staff"], tenant: "nowhere" },
};

const jwk = (...kind) => ({
  ...generateKeyPairSync(...kind).privateKey.export({ format: "jwk" }),
  kid: randomUUID(),
  use: "sig",
});

const keys = () => [
  jwk("rsa", { modulusLength: 2048 }),
  jwk("ec", { namedCurve: "P-256" }),
  jwk("ed25519"),
];

const made = (issuer) =>
  new Provider(issuer, {
    jwks: { keys: keys() },
    clients: Object.keys(clients).map((client_id) => ({
      client_id,
      client_secret: "of-a-test",
      grant_types: ["client_credentials"],
      response_types: [],
      redirect_uris: [],
    })),
    scopes: ["api"],
    extraTokenClaims: (_, token) => clients[token.clientId],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // A resource says what its tokens are to be: https://AUDIENCE.example/ALGORITHM/SECONDS
        getResourceServerInfo: (_, resource) => {
          const { hostname, pathname } = new URL(resource);
          const [, alg, seconds] = pathname.split("/");
          return {
            scope: "api",
            audience: hostname.split(".")[0],
            accessTokenFormat: "jwt",
            accessTokenTTL: Number(seconds),
            jwt: { sign: { alg } },
          };
        },
      },
    },
  });

let answer;
const server = createServer((request, response) => answer(request, response));
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  answer = made(issuer).callback();
  console.log(issuer);
  const lines = createInterface({ input: process.stdin });
  lines.on("line", () => {
    answer = made(issuer).callback();
    console.log("rotated");
  });
  lines.on("close", () => process.exit(0));
});
