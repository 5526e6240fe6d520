/**
 * Reads and writes data sets of transitions as Minari (https://minari.farama.org) stores them: a folder with `metadata.json`
 * and `main_data.hdf5`, which has a group for each episode. `Transitions.ts` exports the public functions.
 */
import { Effect, type FileSystem, Path, Schema } from "effect"
import { jsonText } from "../../../base/text/jsonText.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { mostBytes, readBytes, readText, replaceFolder, statOf, systemMessage } from "../../../base/files/files.ts"
import { oneLine } from "../../../base/text/text.ts"
import { type Env, rowSpaceOf } from "../../env/Env.ts"
import { type ActionSpace, isWhole, maskSizeOf, partsOf, sizeOf, type Space } from "../../env/Space.ts"
import { type Hdf5Dataset, encode, type Hdf5Group, type Hdf5Node } from "../../../base/formats/hdf5/Hdf5.ts"
import { type Hdf5File, read } from "../../../base/formats/hdf5/read.ts"
import { LearningError } from "../Learner.ts"
import type { Transitions } from "./DataSet.ts"
import { notFiniteIn, wrongElementIn } from "./player.ts"

const dataFile = "main_data.hdf5"
const metadataFile = "metadata.json"

type Spaces = Pick<Env, "id" | "observationSpace" | "actionSpace" | "actionMask">

/** A part of a space that has no parts of its own; Minari stores each in a dataset of its own. */
interface Leaf {
  /** The path in the group of an episode, such as `observations/position` or `observations/_index_0`. */
  readonly path: string
  readonly space: ActionSpace
  /** The place of the part's numbers in a flat row, and their count. */
  readonly offset: number
  readonly size: number
}

/** Returns the parts of a space with their paths, in the order of their numbers in a flat row. */
const leavesOf = (root: string, space: Space): ReadonlyArray<Leaf> => {
  const paths = (path: string, inner: Space): ReadonlyArray<string> =>
    inner._tag === "Dict"
      ? Object.entries(inner.parts).flatMap(([name, part]) => paths(`${path}/${name}`, part))
      : inner._tag === "Tuple"
        ? inner.parts.flatMap((part, index) => paths(`${path}/_index_${index}`, part))
        : [path]
  const all = paths(root, space)
  return partsOf(space).map(({ space: leaf, offset, size }, at) => ({ path: all[at], space: leaf, offset, size }))
}

// --- Reading ---

/**
 * The part of Minari's description of a space that is needed here: the number of the first choice, which need not be 0.
 */
interface Described {
  readonly start?: number | ReadonlyArray<number>
  readonly subspaces?: Readonly<Record<string, Described>> | ReadonlyArray<Described>
}
const Described: Schema.Codec<Described> = Schema.Struct({
  start: Schema.optionalKey(Schema.Union([Schema.Int, Schema.Array(Schema.Int)])),
  subspaces: Schema.optionalKey(
    Schema.suspend(() => Schema.Union([Schema.Array(Described), Schema.Record(Schema.String, Described)])),
  ),
})
const Metadata = Schema.Struct({
  observation_space: Schema.optionalKey(Schema.String),
  action_space: Schema.optionalKey(Schema.String),
})

/** Decodes a space. Python writes infinite bounds as `Infinity`, which is not JSON; they are not needed here. */
const decodeSpace = (text: string) =>
  Schema.decodeUnknownEffect(jsonText(Described))(text.replace(/-?\bInfinity\b|\bNaN\b/g, "0"))

/** Returns the numbers of the first choices, by the paths of the parts. Parts without a `start` begin at 0 and are left out. */
const startsIn = (
  path: string,
  { start, subspaces }: Described,
): ReadonlyArray<readonly [string, ReadonlyArray<number>]> => [
  ...(start === undefined ? [] : [[path, typeof start === "number" ? [start] : start] as const]),
  ...(subspaces === undefined
    ? []
    : Array.isArray(subspaces)
      ? subspaces.flatMap((part: Described, index) => startsIn(`${path}/_index_${index}`, part))
      : Object.entries(subspaces).flatMap(([name, part]) => startsIn(`${path}/${name}`, part))),
]

/**
 * Reads a data set of Minari that has the observations and actions of an env: its folder, or the folder `data` in it.
 * It reads the format `hdf5`; images must be stored without JPEG. Fails if the data set and the env do not fit, or if a
 * number is not in the env's space.
 *
 * @example
 * ```ts
 * const transitions = Transitions.fromMinari(Pendulum.env, "/home/me/.minari/datasets/pendulum/mixed-v0")
 * ```
 */
export const fromMinari = Effect.fnUntraced(function* (
  env: Spaces,
  folder: string,
): Effect.fn.Return<Transitions, LearningError, FileSystem.FileSystem | Path.Path> {
  yield* refuseMasks(env)
  const paths = yield* Path.Path
  const inner = paths.join(folder, "data")
  const place = (yield* statOf(paths.join(inner, dataFile))) === undefined ? folder : inner
  const file = paths.join(place, dataFile)
  const failed = (path: string) =>
    Effect.mapError(({ message }: { readonly message: string }) => failure(path, message))
  const hdf5 = yield* Effect.flatMap(readBytes(file, mostBytes.binary), read).pipe(failed(file))
  const metadata = paths.join(place, metadataFile)
  const starts =
    (yield* statOf(metadata)) === undefined ? new Map() : yield* readStarts(metadata).pipe(failed(metadata))

  const names = (yield* failed(file)(hdf5.namesIn(""))) ?? []
  const episodes = names
    .flatMap((name) => (/^episode_\d+$/.test(name) ? [Number(name.slice("episode_".length))] : []))
    .toSorted((one, other) => one - other)
  if (episodes.length === 0) return yield* failure(file, "expected groups called episode_0, episode_1 …, found none")
  const sets: Array<Episode> = []
  for (const episode of episodes) sets.push(yield* failed(file)(readEpisode(env, hdf5, `episode_${episode}`, starts)))
  return joined(env, sets)
})

const failure = (path: string, message: string) => new LearningError({ message: `${path}: ${message}` })

/** Reads the numbers of the first choices from `metadata.json`. */
const readStarts = Effect.fnUntraced(function* (path: string) {
  const text = yield* readText(path, mostBytes.text)
  const spaces = yield* Schema.decodeUnknownEffect(jsonText(Metadata))(text)
  const observations = yield* decodeSpace(spaces.observation_space ?? "{}")
  const actions = yield* decodeSpace(spaces.action_space ?? "{}")
  return new Map([...startsIn("observations", observations), ...startsIn("actions", actions)])
})

/** The steps of an episode, with the final observation as the last row of observations. */
interface Episode {
  readonly steps: number
  readonly observations: Float32Array
  readonly actions: Float32Array
  readonly rewards: Float64Array
  readonly terminated: boolean
}

const readEpisode = Effect.fnUntraced(function* (
  env: Spaces,
  file: Hdf5File,
  episode: string,
  starts: ReadonlyMap<string, ReadonlyArray<number>>,
) {
  const rewards = (yield* file.numbers(`${episode}/rewards`)).data
  const terminations = (yield* file.numbers(`${episode}/terminations`)).data
  const steps = rewards.length
  if (terminations.length !== steps) {
    const message = `${episode}/terminations: expected ${steps} numbers, as there are rewards, found ${terminations.length}`
    return yield* new LearningError({ message })
  }
  const wrong = notFiniteIn(rewards)
  if (wrong >= 0) {
    const message = `${episode}/rewards: step ${wrong}: expected a finite number, found ${rewards[wrong]}`
    return yield* new LearningError({ message })
  }
  const rowsOf = Effect.fnUntraced(function* (root: string, space: Space, rows: number) {
    const width = sizeOf(space)
    const flat = new Float32Array(rows * width)
    for (const leaf of leavesOf(root, space)) {
      const { shape, data } = yield* file.numbers(`${episode}/${leaf.path}`)
      if (data.length !== rows * leaf.size || (rows > 0 && shape[0] !== rows)) {
        const message = `${episode}/${leaf.path}: expected ${rows} rows of ${leaf.size} numbers, as ${env.id} has, found the shape [${shape.join(", ")}]`
        return yield* new LearningError({ message })
      }
      const start = starts.get(leaf.path)
      const wrongElementOf = wrongElementIn(leaf.space)
      for (let row = 0; row < rows; row++) {
        for (let at = 0; at < leaf.size; at++) {
          flat[row * width + leaf.offset + at] = data[row * leaf.size + at] - (start?.[at] ?? 0)
        }
        const wrong = wrongElementOf(flat, row * width + leaf.offset)
        if (wrong !== undefined) {
          const message = `${episode}/${leaf.path}: step ${row}: expected ${wrong.expected}, found ${data[row * leaf.size + wrong.element]}`
          return yield* new LearningError({ message })
        }
      }
    }
    return flat
  })
  return {
    steps,
    observations: yield* rowsOf("observations", env.observationSpace, steps + 1),
    actions: yield* rowsOf("actions", env.actionSpace, steps),
    rewards,
    terminated: terminations.at(-1) === 1,
  }
})

/** Joins episodes. An episode whose last step neither terminated nor truncated it was cut short, so it counts as truncated. */
const joined = ({ observationSpace, actionSpace }: Spaces, episodes: ReadonlyArray<Episode>): Transitions => {
  const width = sizeOf(observationSpace)
  const rows = episodes.reduce((sum, { steps }) => sum + steps, 0)
  const size = rows * sizeOf(actionSpace)
  const observations = new Float32Array(rows * width)
  const finalObservations = new Float32Array(episodes.length * width)
  const actions = isWhole(actionSpace) ? new Int32Array(size) : new Float32Array(size)
  const rewards = new Float32Array(rows)
  let row = 0
  for (const [index, episode] of episodes.entries()) {
    const last = episode.steps * width
    observations.set(episode.observations.subarray(0, last), row * width)
    finalObservations.set(episode.observations.subarray(last), index * width)
    actions.set(episode.actions, row * sizeOf(actionSpace))
    rewards.set(episode.rewards, row)
    row += episode.steps
  }
  return {
    rows,
    observations,
    actions,
    rewards,
    lengths: Int32Array.from(episodes, ({ steps }) => steps),
    terminated: Uint8Array.from(episodes, ({ terminated }) => Number(terminated)),
    finalObservations,
    returns: episodes.map((episode) => episode.rewards.reduce((sum, reward) => sum + reward, 0)),
  }
}

// --- Writing ---

export interface MinariOptions {
  /** Minari's name of the data set, such as `pendulum/mixed-v0`; it ends with a version. */
  readonly id: string
  /** The name of the algorithm that made the data, and other facts, for Minari's `metadata.json`. */
  readonly metadata?: Readonly<Record<string, string | number>>
}

/** The oldest version of Minari's format that has everything that this file writes. */
const minariVersion = "0.5.0"

/**
 * Writes transitions as a data set that Minari's Python reads: `minari.MinariDataset("FOLDER/data")`, or by its id, if the
 * folder is the one of this id in Minari's folder of data sets. An existing data set is replaced as a whole.
 *
 * @example
 * ```ts
 * const random = Transitions.record(Pendulum.env, { episodes: 20, policy: "random" })
 * const saved = Transitions.toMinari(Pendulum.env, "datasets/pendulum/random-v0", random, { id: "pendulum/random-v0" })
 * ```
 */
export const toMinari = Effect.fnUntraced(function* (
  env: Spaces,
  folder: string,
  transitions: Transitions,
  { id, metadata = {} }: MinariOptions,
): Effect.fn.Return<void, LearningError, FileSystem.FileSystem | Path.Path> {
  yield* refuseMasks(env)
  if (!/^([-_\w][-_\w/]*[-_\w]+\/)?[-_\w]+?-v\d+$/.test(id)) {
    return yield* failure(folder, `expected a name of a data set such as pendulum/mixed-v0, found "${id}"`)
  }
  const paths = yield* Path.Path
  const place = paths.join(folder, "data")
  const failed = Effect.mapError((error: Parameters<typeof systemMessage>[0]) => failure(place, systemMessage(error)))
  const bytes = yield* Effect.try({
    try: () => encode({ children: Object.fromEntries(episodesOf(env, transitions)) }),
    catch: (error) => failure(place, oneLine(String(error))),
  })
  const described = {
    ...metadata,
    dataset_id: id,
    minari_version: minariVersion,
    total_episodes: transitions.lengths.length,
    total_steps: transitions.rows,
    data_format: "hdf5",
    jpeg_encoding: false,
    dataset_size: Math.round(bytes.length / 100_000) / 10,
    observation_space: spaceText(env.observationSpace),
    action_space: spaceText(env.actionSpace),
  }
  const files = { [dataFile]: bytes, [metadataFile]: utf8.encode(`${JSON.stringify(described)}\n`) }
  yield* failed(replaceFolder(place, files))
})

/** Minari has no place for action masks. */
const refuseMasks = (env: Spaces) =>
  maskSizeOf(rowSpaceOf(env)) === 0
    ? Effect.void
    : Effect.fail(
        new LearningError({ message: `transitions: ${env.id} has action masks, which Minari's files can't hold` }),
      )

/** Returns the group of each episode, by its name. */
const episodesOf = function* (env: Spaces, transitions: Transitions): Generator<readonly [string, Hdf5Group]> {
  const { observations, actions, rewards, lengths, terminated, finalObservations } = transitions
  const width = sizeOf(env.observationSpace)
  const actionSize = sizeOf(env.actionSpace)
  let row = 0
  for (const [index, steps] of lengths.entries()) {
    const seen = new Float32Array((steps + 1) * width)
    seen.set(observations.subarray(row * width, (row + steps) * width))
    seen.set(finalObservations.subarray(index * width, (index + 1) * width), steps * width)
    const ending = (happened: boolean): Hdf5Dataset => {
      const data = new Uint8Array(steps)
      if (happened) data[steps - 1] = 1
      return { shape: [steps], data }
    }
    const episode = {
      observations: nodeOf(env.observationSpace, seen, width),
      actions: nodeOf(env.actionSpace, actions.subarray(row * actionSize, (row + steps) * actionSize), actionSize),
      rewards: { shape: [steps], data: Float64Array.from(rewards.subarray(row, row + steps)) },
      terminations: ending(terminated[index] !== 0),
      truncations: ending(terminated[index] === 0),
    }
    yield [`episode_${index}`, { attributes: { id: index, total_steps: steps }, children: episode }]
    row += steps
  }
}

/** Returns the dataset of the rows of a space, or the group of the datasets of its parts. */
const nodeOf = (space: Space, flat: Float32Array | Int32Array, width: number, offset = 0): Hdf5Node => {
  if (space._tag === "Dict" || space._tag === "Tuple") {
    const children: Record<string, Hdf5Node> = {}
    let at = offset
    for (const [name, part] of Object.entries(space.parts)) {
      children[space._tag === "Dict" ? name : `_index_${name}`] = nodeOf(part, flat, width, at)
      at += sizeOf(part)
    }
    return { children }
  }
  const rows = flat.length / width
  const size = sizeOf(space)
  const data = space._tag === "Box" ? new Float32Array(rows * size) : new Int32Array(rows * size)
  for (let row = 0; row < rows; row++) {
    for (let at = 0; at < size; at++) data[row * size + at] = flat[row * width + offset + at]
  }
  return { shape: [rows, ...(space._tag === "Box" ? space.shape : space._tag === "Discrete" ? [] : [size])], data }
}

/** Describes a space as Minari does, in JSON. */
const spaceText = (space: Space): string => {
  switch (space._tag) {
    case "Discrete":
      return `{"type": "Discrete", "dtype": "int64", "start": 0, "n": ${space.n}}`
    case "MultiDiscrete": {
      const starts = space.sizes.map(() => 0)
      return `{"type": "MultiDiscrete", "dtype": "int64", "nvec": [${space.sizes.join(", ")}], "start": [${starts.join(", ")}]}`
    }
    case "MultiBinary":
      return `{"type": "MultiBinary", "n": ${space.n}}`
    case "Box": {
      const bounds = `"low": ${nested(space.shape, space.low)}, "high": ${nested(space.shape, space.high)}`
      return `{"type": "Box", "dtype": "float32", "shape": [${space.shape.join(", ")}], ${bounds}}`
    }
    case "Dict": {
      const parts = Object.entries(space.parts).map(([name, part]) => `${JSON.stringify(name)}: ${spaceText(part)}`)
      return `{"type": "Dict", "subspaces": {${parts.join(", ")}}}`
    }
    case "Tuple":
      return `{"type": "Tuple", "subspaces": [${space.parts.map(spaceText).join(", ")}]}`
  }
}

/** Writes numbers as nested lists of a shape. 1e999 is the number in JSON that Python reads as infinity. */
const nested = ([first, ...rest]: ReadonlyArray<number>, numbers: ReadonlyArray<number>): string => {
  if (first === undefined) {
    const [number] = numbers
    return Number.isFinite(number) ? String(number) : number > 0 ? "1e999" : "-1e999"
  }
  const size = numbers.length / first
  const parts = Array.from({ length: first }, (_, at) => nested(rest, numbers.slice(at * size, (at + 1) * size)))
  return `[${parts.join(", ")}]`
}
