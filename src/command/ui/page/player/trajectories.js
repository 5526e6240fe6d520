/**
 * Reads files of trajectories, which are the recorded episodes of a run. Their contents are checked, since any program may
 * have written them.
 */

/** The seconds between two steps if a step has no `dt`. */
const usualStep = 1 / 30

/** The largest size of an episode file's JSON that is read. The episodes that a run records have only a few megabytes. */
const mostBytes = 256 * 1024 * 1024

/**
 * Reads the episodes in the bytes of a `trajectories.json` or `trajectories.json.gz`. It fails with a message of one line.
 */
export const trajectoriesIn = async (buffer) => {
  const bytes = new Uint8Array(buffer)
  // A server may already have decompressed the file.
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
  if (!isGzip && bytes.length > mostBytes) throw tooLarge()
  const text = isGzip ? await unzipped(bytes) : new TextDecoder().decode(bytes)
  return episodesOf(parsed(text))
}

const tooLarge = () => new Error(`expected at most ${mostBytes / 1024 / 1024} MB of JSON`)

const unzipped = async (bytes) => {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader()
  const damaged = (error) => {
    throw new Error("the compressed data is damaged", { cause: error })
  }
  const decoder = new TextDecoder()
  let text = ""
  let read = 0
  for (;;) {
    const { done, value } = await reader.read().catch(damaged)
    if (done) return text + decoder.decode()
    read += value.length
    if (read > mostBytes) {
      await reader.cancel()
      throw tooLarge()
    }
    text += decoder.decode(value, { stream: true })
  }
}

const parsed = (text) => {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`expected JSON: ${error.message}`, { cause: error })
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value)

/** Returns the episodes that have steps. */
const episodesOf = (value) => {
  if (!Array.isArray(value)) throw new Error(`expected a list of episodes, found ${found(value)}`)
  return value.map(episodeOf).filter(({ trajectory }) => trajectory.length > 0)
}

const episodeOf = (value, index) => {
  // Before 2025, RLtools wrote an episode as a list of steps without parameters. `Object` turns null into {}.
  const { parameters = {}, trajectory } = Array.isArray(value) ? { trajectory: value } : Object(value)
  if (!Array.isArray(trajectory)) {
    throw new Error(`episode ${index + 1}: expected a list of steps as \`trajectory\`, found ${found(trajectory)}`)
  }
  return {
    parameters,
    trajectory: trajectory.map((step, place) => stepOf(step, `episode ${index + 1}, step ${place + 1}`)),
  }
}

const stepOf = (value, where) => {
  if (!isObject(value)) throw new Error(`${where}: expected an object, found ${found(value)}`)
  // In JSON, a reward that is not a finite number is null.
  const { dt, reward: written = 0 } = value
  const reward = written ?? Number.NaN
  if (typeof reward !== "number") throw new Error(`${where}: expected a number as \`reward\`, found ${found(reward)}`)
  return { ...value, reward, dt: typeof dt === "number" && dt > 0 ? dt : usualStep }
}

/** Describes a value whose type is wrong, in a few words. */
const found = (value) => {
  if (value === undefined) return "nothing"
  if (Array.isArray(value)) return "a list"
  return isObject(value) ? "an object" : JSON.stringify(value).slice(0, 40)
}

/** The most terms of a reward that are shown; a file of somebody else may have a million. */
const mostTerms = 50

/** Returns the terms of a reward that are shown, with their names. */
export const shownTerms = (terms) =>
  Object.entries(terms)
    .filter(([, value]) => Number.isFinite(value))
    .slice(0, mostTerms)
