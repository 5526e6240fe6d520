import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ConfigProvider, Effect } from "effect"
import { write } from "../../command/cli/effect.ts"

export const withVariables = <A, E, R>(variables: Readonly<Record<string, string>>, effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(variables))

/** Writes a compiler that runs these lines of the shell before it compiles; `$source` is the file. Returns its path. */
export const compilerIn = (folder: string, lines: string, flags = ""): string => {
  const compiler = write(folder, "cc", `#!/bin/sh\nfor source; do :; done\n${lines}\nexec cc "$@" ${flags}\n`)
  chmodSync(compiler, 0o700)
  return compiler
}

/** Lines of the shell that give all products of vectors another definition. */
export const productsAs = (definition: string): string =>
  [
    `sed 's/^#define f32x4_mul(.*/#define f32x4_mul(L, a, b) ${definition}/' "$source" > "$source.new"`,
    'if [ -s "$source.new" ]; then mv "$source.new" "$source"; fi',
  ].join("\n")

/** Lines of the shell that make all products of vectors wrong. */
export const wrongProducts = productsAs("((a) + (b))")

/** Lines of the shell that answer questions, so that only compiling goes on with the next lines. */
export const answering = 'case "$*" in *-dM*) exec cc "$@";; esac\n'

/** Writes a program of the shell that tells its number and then waits for an hour, with a child that does so, too. */
export const hangingIn = (
  folder: string,
  before = "",
): { readonly compiler: string; readonly pids: () => ReadonlyArray<number> } => {
  const [compiler, list] = [write(folder, "hanging-cc", ""), join(folder, "pids")]
  writeFileSync(
    compiler,
    `#!/bin/sh\n${before}sleep 3600 &\necho $$ $! > "${list}.new"\nmv "${list}.new" "${list}"\nwait\n`,
  )
  chmodSync(compiler, 0o700)
  return { compiler, pids: () => (existsSync(list) ? readFileSync(list, "utf8").trim().split(" ").map(Number) : []) }
}

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    // A process that has ended, and that nobody has waited for, is no longer running.
    return process.platform !== "linux" || !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}
