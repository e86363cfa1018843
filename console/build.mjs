// Builds `dist/`: scripts and styles with fingerprints in their names, the two pages that name them, and everything
// compressed. The descriptions of the endpoints become data of the page that shows them.
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { copyFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { parse } from "yaml";

const here = import.meta.dirname;
const dist = join(here, "dist");
const limit = 400_000;

/** `import spec from "spec:openapi"` is the description as data. */
const specs = {
  name: "specs",
  setup(api) {
    api.onResolve({ filter: /^spec:/ }, ({ path }) => ({ path: path.slice(5), namespace: "spec" }));
    api.onLoad({ filter: /.*/, namespace: "spec" }, ({ path }) => {
      const file = join(here, "../specs/api", `${path}.yaml`);
      const data = parse(readFileSync(file, "utf8"), { maxAliasCount: -1 });
      return { contents: JSON.stringify(data), loader: "json", watchFiles: [file] };
    });
  },
};

for (const name of readdirSync(dist)) if (name !== ".gitignore") rmSync(join(dist, name));

/** Each page by itself, so that it comes in few files; and what only tests ask for by its name. */
const bundles = [
  ["src/connect.ts", "src/main.tsx", "src/style/main.css"],
  ["src/docs.tsx"],
  ["src/client/connection.ts", "src/views/library/kind.ts"],
];

const bundled = (entryPoints) => build({
  absWorkingDir: here,
  entryPoints,
  entryNames: "[name]-[hash]",
  chunkNames: "part-[hash]",
  assetNames: "[name]-[hash]",
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2023",
  minify: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  metafile: true,
  plugins: [specs],
});

const results = await Promise.all(bundles.map(bundled));
const outputs = results.flatMap((result) => Object.entries(result.metafile.outputs));
const of = (entry) => {
  const found = outputs.find(([, output]) => output.entryPoint === entry);
  if (!found) throw new Error(`${entry} was not built`);
  return found;
};
const asset = (path) => `/assets/${basename(path)}`;

for (const [page, entry] of [["index", "src/main.tsx"], ["docs", "src/docs.tsx"]]) {
  const [script, output] = of(entry);
  const parts = output.imports.filter((one) => one.kind === "import-statement").map((one) => asset(one.path));
  const text = readFileSync(join(here, `src/${page}.html`), "utf8")
    .replace("{{style}}", asset(of("src/style/main.css")[0]))
    .replaceAll("{{connect}}", asset(of("src/connect.ts")[0]))
    .replaceAll("{{script}}", asset(script))
    .replace("{{parts}}", parts.map((part) => `<link rel="modulepreload" href="${part}">`).join("\n"));
  writeFileSync(join(dist, `${page}.html`), text);
}

copyFileSync(join(here, "src/icon.svg"), join(dist, "icon.svg"));

const license = ["preact", "@preact/signals", "@preact/signals-core"].map((name) => {
  const text = readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8");
  return `${name}\n\n${text}`;
});
writeFileSync(join(dist, "licenses.txt"), license.join("\n\n"));

let sum = 0;
for (const name of readdirSync(dist).filter((name) => name !== ".gitignore")) {
  const content = readFileSync(join(dist, name));
  const gzip = gzipSync(content, { level: 9 });
  const brotli = brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(join(dist, `${name}.br`), brotli);
  sum += gzip.length;
  console.log(`${name.padEnd(28)} ${String(content.length).padStart(8)} ${String(brotli.length).padStart(8)} br`);
}
console.log(`${"together, gzip".padEnd(28)} ${String(sum).padStart(8)} of ${limit}`);
if (sum > limit) throw new Error(`the assets are ${sum} bytes compressed; the limit is ${limit}`);
