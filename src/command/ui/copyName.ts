/**
 * Names the copies of runs' files in an exported site. A file server chooses a file's type by its name, or by its first
 * bytes, and a run's files are not trusted: a page or a script among them would run in the site's origin, where it could read
 * all runs. So only names that every server treats as data are kept. These are pure functions.
 *
 * @example
 * ```ts
 * copyName("steps/10/trajectories.json.gz") // the same
 * copyName("ui.esm.js") // "ui.esm.js.txt"
 * ```
 */

/** The extensions of data, which no browser executes. Any other extension may be executed with some servers. */
const inert: ReadonlySet<string> = new Set(
  "json jsonl yaml yml toml csv tsv log txt md png jpg jpeg gif webp gz safetensors h5 npz npy onnx parquet tfevents".split(" "), // prettier-ignore
)

/**
 * Returns the name of a file's copy: its own name, or its name with `.txt` if one of its extensions is not an extension of
 * data. All extensions count, because a server that does not know the last one may use another: `evil.html.h5` and
 * `evil.html.gz` can be HTML. Every server knows `.txt`. `isTaken` tells whether another file of the run already has a name.
 */
export const copyName = (path: string, isTaken: (path: string) => boolean = () => false): string => {
  const [, ...extensions] = path.slice(path.lastIndexOf("/") + 1).split(".")
  const isInert = extensions.length > 0 && extensions.every((one) => inert.has(one.toLowerCase()) || /^\d+$/.test(one))
  if (isInert || extensions.at(-1) === "txt") return path
  let name = `${path}.txt`
  while (isTaken(name)) name += ".txt"
  return name
}

/** The number of bytes at the start of a file that `isDocument` needs, which is a little more than browsers look at. */
export const documentStart = 2048

/**
 * Tells whether a server or a browser that judges a file by its first bytes could think that it is a page: it begins with a
 * tag, or is a PDF. Neither recognises SVG by its bytes, so a text file with an SVG in it stays text.
 */
export const isDocument = (start: Uint8Array): boolean =>
  /^\s*(?:<(?!svg[\s>])|%PDF-)/i.test(new TextDecoder().decode(start).replaceAll("\0", ""))
