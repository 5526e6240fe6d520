/** Runs code in a process that has opened as many files as it may, so that it cannot make pipes. */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/**
 * Runs `before`, opens files until the limit is reached, then runs `body`. Both are code of modules, whose `import` lines belong
 * into `before`. Returns what the process printed.
 */
export const withoutFiles = ({ before, body }: { readonly before: string; readonly body: string }) => {
  const script = `
import { openSync } from "node:fs"
${before}
try { for (;;) openSync("/dev/null", "r") } catch {}
${body}`
  const command = `ulimit -n 100; exec "$0" --input-type=module --eval "$1"`
  return spawnSync("bash", ["-c", command, process.execPath, script], { cwd: root, encoding: "utf8" })
}
