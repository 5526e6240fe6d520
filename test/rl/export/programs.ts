import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Tells whether a program is installed. Tests that need it are skipped otherwise. */
export const isInstalled = (program: string): boolean => spawnSync(program, ["--version"]).status === 0

/** Runs a program and returns its output. The exit code must be 0. */
export const output = (program: string, args: ReadonlyArray<string>): string =>
  execFileSync(program, args, { encoding: "utf8", maxBuffer: 1e8 })

/** Runs a program with an input, and returns its output as bytes. The exit code must be 0. */
export const bytesFrom = (program: string, input: Uint8Array): Uint8Array =>
  Uint8Array.from(execFileSync(program, { input, maxBuffer: 1e8 }))

export const inFolder = <A>(use: (folder: string) => A): A => {
  const folder = mkdtempSync(join(tmpdir(), "effect-rl-export-"))
  try {
    return use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
