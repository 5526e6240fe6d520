import { spawn } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const bin = fileURLToPath(new URL("../../node_modules/workerd/bin/workerd", import.meta.url))

/** The engine of edge workers; undefined where the package is not installed. */
export const workerd = existsSync(bin) ? bin : undefined

const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "2026-01-01"))]);
`

/** Runs `test()` of a worker's default export, and gives the lines that it prints. */
export const inWorkerd = (
  worker: string,
  folder: string,
): Promise<{ readonly code: number | null; readonly lines: ReadonlyArray<string> }> => {
  writeFileSync(join(folder, "worker.js"), worker)
  writeFileSync(join(folder, "config.capnp"), config)
  const child = spawn(bin, ["test", join(folder, "config.capnp")], { stdio: ["ignore", "pipe", "pipe"] })
  let text = ""
  child.stdout.on("data", (chunk) => (text += String(chunk)))
  child.stderr.on("data", (chunk) => (text += String(chunk)))
  return new Promise((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, lines: text.split("\n") }))
  })
}
