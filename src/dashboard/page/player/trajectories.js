/** Reads files of trajectories, the recorded episodes of a run. */

/** The seconds between two steps that have no `dt`. */
export const usualStep = 1 / 30

/** Reads the episodes in the bytes of a `trajectories.json` or `trajectories.json.gz`. */
export const trajectoriesIn = async (buffer) => {
  const bytes = new Uint8Array(buffer)
  // A server may already have decompressed the file.
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
  const stream = new Blob([bytes]).stream()
  const text = await new Response(isGzip ? stream.pipeThrough(new DecompressionStream("gzip")) : stream).text()
  // Before 2025, RLtools wrote an episode as a list of steps without parameters.
  return JSON.parse(text)
    .map((episode) => (Array.isArray(episode) ? { parameters: {}, trajectory: episode } : episode))
    .filter(({ trajectory }) => trajectory.length > 0)
}
