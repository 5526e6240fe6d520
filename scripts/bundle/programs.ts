// Lists the programs of threads and processes that the library starts. Each has a bundle of its own; see library.ts.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, posix, sep } from "node:path"

const withoutComments = (text: string): string =>
  text
    .split("\n")
    .filter((line) => !/^\s*(?:\/\/|\/\*|\*)/.test(line))
    .join("\n")

/**
 * Returns the programs that the modules of a folder name, as paths in it without extension: the module `trainer/a.ts` with
 * `programBeside(import.meta.url, "engine-node")` names `trainer/engine-node`. Fails if there is no such program.
 */
export const programsIn = (source: string): ReadonlyArray<string> =>
  readdirSync(source, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll(sep, "/"))
    .filter((file) => file.endsWith(".ts"))
    .sort()
    .flatMap((file) =>
      Array.from(
        withoutComments(readFileSync(join(source, file), "utf8")).matchAll(
          /\bprogramBeside\((?:\s*import\.meta\.url,\s*"([\w-]+)",?\s*\))?/g,
        ),
        ([, name]: ReadonlyArray<string | undefined>) => {
          if (name === undefined)
            throw new Error(`${file}: programBeside: expected import.meta.url and a name, which the build can read`)
          const program = posix.join(posix.dirname(file), name)
          if (!existsSync(join(source, `${program}.ts`)))
            throw new Error(`${file}: programBeside: expected the program ${program}.ts, found no such file`)
          return program
        },
      ),
    )
