/** Finds the programs of threads and processes that the library starts. */

/**
 * Returns the URL of a worker's program, which lies next to the module at `url`, as TypeScript or compiled.
 *
 * @example
 * ```ts
 * programBeside(import.meta.url, "engine-node") // file:///…/engine-node.ts
 * ```
 */
export const programBeside = (url: string, name: string): URL =>
  new URL(`./${name}${url.endsWith(".ts") ? ".ts" : ".js"}`, url)
