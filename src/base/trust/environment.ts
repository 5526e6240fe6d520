/**
 * Chooses the environment variables of a program that a config names: the common ones, which say where things are on
 * this machine, and those that the config lists. Other variables, such as `OPENAI_API_KEY`, are not passed on.
 */

/** The variables that every program gets. They hold no secrets. */
export const commonVariables: ReadonlyArray<string> = [
  "HOME",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "LOGNAME",
  "PATH",
  "SHELL",
  "TERM",
  "TMPDIR",
  "TZ",
  "USER",
  // Where programs look for libraries, and Python for packages:
  "CONDA_PREFIX",
  "DYLD_LIBRARY_PATH",
  "LD_LIBRARY_PATH",
  "PYTHONPATH",
  "VIRTUAL_ENV",
  // On Windows:
  "APPDATA",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "PATHEXT",
  "SYSTEMROOT",
  "TEMP",
  "USERNAME",
  "USERPROFILE",
]

/** The environment of a program, or the name of a variable that the config lists but that is not set. */
type ProgramEnvironment = { readonly env: Readonly<Record<string, string>> } | { readonly missing: string }

/** Returns the common variables that are set, and those in `names`, all of which must be set. */
export const environmentOf = (
  names: ReadonlyArray<string>,
  lookup: (name: string) => string | undefined,
): ProgramEnvironment => {
  const missing = names.find((name) => lookup(name) === undefined)
  if (missing !== undefined) return { missing }
  const env: Record<string, string> = {}
  for (const name of [...commonVariables, ...names]) {
    const value = lookup(name)
    if (value !== undefined) env[name] = value
  }
  return { env }
}
