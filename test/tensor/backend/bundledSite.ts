import { copyFileSync, mkdirSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { build } from "esbuild"
import { root } from "../../command/cli/effect.ts"

/** Writes a site with one page into `FOLDER/site`: a program with all it imports, and a file of ONNX Runtime as `ort.wasm`. */
export const writeSite = async (folder: string, program: string, wasm: string): Promise<void> => {
  const site = join(folder, "site")
  mkdirSync(site)
  copyFileSync(createRequire(import.meta.url).resolve(wasm), join(site, "ort.wasm"))
  writeFileSync(join(site, "index.html"), `<!doctype html><script type="module" src="page.js"></script>`)
  await build({
    absWorkingDir: root,
    stdin: { contents: program, resolveDir: root, sourcefile: "program.js" },
    bundle: true,
    format: "esm",
    platform: "browser",
    outfile: join(site, "page.js"),
    logLevel: "silent",
  })
}
