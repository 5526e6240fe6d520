#!/usr/bin/env node
// Starts the command under a Node that can run it: this one, or the one that the project pins.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import module, { createRequire } from "node:module"
import { constants } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { setFlagsFromString } from "node:v8"

const here = dirname(fileURLToPath(import.meta.url))
const [major, minor] = process.versions.node.split(".").map(Number)
const words = process.argv.slice(2)

if (words.length === 1 && words[0] === "--version") {
  // Loading the command would take several times as long as this answer.
  console.log(`effect v${createRequire(import.meta.url)("../package.json").version}`)
} else if (major > 22 || (major === 22 && minor >= 19)) {
  try {
    await runCommand()
  } catch (error) {
    // Deno's message names the permission and its flag.
    if (error?.name !== "NotCapable") throw error
    console.error(`effect: ${error.message}; --allow-all grants what every command may need`)
    process.exit(2)
  }
} else {
  const newer = pinnedNode()
  if (newer === undefined) {
    console.error(
      `effect: Node 22.19 or newer is needed, this is ${process.versions.node}; "npm install node@24" brings one`,
    )
    process.exit(2)
  }
  const child = spawn(newer, [fileURLToPath(import.meta.url), ...words], { stdio: "inherit" })
  // A terminal sends Ctrl-C to both; the command counts signals that come together as one.
  const signals = ["SIGINT", "SIGTERM", "SIGHUP", ...(process.platform === "win32" ? [] : ["SIGUSR1"])]
  for (const signal of signals) process.on(signal, () => child.kill(signal))
  child.on("exit", (code, signal) => process.exit(code ?? (signal === null ? 1 : 128 + constants.signals[signal])))
}

/** Loads the command, which then runs. */
async function runCommand() {
  await keepCompiled()
  // While the modules load, V8 would enlarge its space for young objects several times and then keep it. Without that, runs
  // take a fifth to a third less memory, and listing many runs takes less CPU time.
  setFlagsFromString("--semi-space-growth-factor=1")
  // The arrays of ONNX Runtime are outside of V8's heap. V8 13 collects garbage each time that they have grown by 64 MB, which
  // takes a tenth of the time of training a language model; with this flag it looks at the sizes of all memory.
  if (major === 24) setFlagsFromString("--external-memory-accounted-in-global-limit")
  // In its own checkout it runs the sources. An installed package has them too, but Node strips no types there.
  const isInstalled = /[\\/]node_modules[\\/]/.test(here)
  const main = join(here, isInstalled ? "../dist/bundle/command.cli.main.js" : "../src/command/cli/main.ts")
  if (isInstalled) {
    const { useBundledEffect } = await import("./bundledEffect.js")
    useBundledEffect()
  }
  await import(pathToFileURL(main).href)
}

/**
 * Lets Node keep compiled JavaScript in the user's own folder. Its default is a folder for temporary files, which any user of the
 * machine can make first, and fill with code that Node then executes. A NODE_COMPILE_CACHE of the user has been in effect already.
 */
async function keepCompiled() {
  if (process.env.NODE_COMPILE_CACHE || process.env.NODE_DISABLE_COMPILE_CACHE) return
  const { userCache } = await import("./userCache.js")
  const folder = userCache("compiled")
  if (folder !== undefined) module.enableCompileCache?.(folder)
}

/** The binary of the `node` package, if the project or its user has it. */
function pinnedNode() {
  for (const from of [import.meta.url, pathToFileURL(join(process.cwd(), "package.json")).href]) {
    try {
      const binary = join(dirname(createRequire(from).resolve("node/package.json")), "bin", "node")
      if (existsSync(binary)) return binary
    } catch {
      // It isn't installed there.
    }
  }
  return undefined
}
