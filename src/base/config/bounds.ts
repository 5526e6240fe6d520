/**
 * Lists the bounds of all numbers in configs and flags. A number that becomes memory, processes, threads or connections
 * has a largest value, so that a typing error, or a config from somebody else, is refused before it can exhaust the
 * machine. Each Schema of such a number names its row in this table (`bounded` in `fields.ts`), and so does each flag;
 * a test walks over all configs and fails at a number without a row.
 *
 * @example
 * ```ts
 * const ranks = Fields.withDefault(Fields.bounded("ranks"), 1)
 * // trainer.ranks: 100000 is refused: expected a value between 1 and 256 (each is a process), found 100000
 * ```
 */

/** The part of the machine that a number takes up. Numbers that only take time can have any size: the user can end a run. */
type Resource = "memory" | "processes" | "threads" | "connections" | "timers" | "time" | "nothing"

export interface ResourceBound {
  readonly least: number
  readonly most: number
  readonly takes: Resource
  /** The reason for the largest value, for messages. */
  readonly because: string
}

const largest = Number.MAX_SAFE_INTEGER

const row = (least: number, most: number, takes: Resource, because: string): ResourceBound => ({
  least,
  most,
  takes,
  because,
})

/** The bounds of whole numbers. */
export const bounds = {
  // Processes, threads and connections.
  /** Processes that compute gradients together. */
  ranks: row(1, 256, "processes", "each is a process"),
  /** Runs that are trained at a time, each in a process of its own. */
  jobs: row(1, 1024, "processes", "each is a process"),
  /** Programs that are started for a data set or an env. */
  programs: row(1, 256, "processes", "each is a process"),
  /** Threads of a process; 0 is the process's own thread. */
  threads: row(0, 1024, "threads", "each is a thread"),
  /** Requests that wait for answers at the same time. */
  atOnce: row(1, 10_000, "connections", "each is a connection"),
  port: row(0, 65_535, "nothing", "that is the largest port"),

  // The vectorised loop and its algorithms.
  envs: row(1, 65_536, "memory", "each takes memory"),
  /** Steps of each env between two updates, which are kept in memory. */
  rolloutSteps: row(1, 1_048_576, "memory", "all are kept in memory"),
  /** Steps through which a memory is unrolled in the graph; 0 is all of a rollout. */
  unrolled: row(0, 65_536, "memory", "the graph has a copy of the layer for each"),
  transitions: row(1, 1_000_000_000, "memory", "all are kept in memory"),
  batchRows: row(1, 1_048_576, "memory", "the graph computes all at once"),
  /** Rollouts whose steps are kept. */
  rollouts: row(1, 10_000, "memory", "all are kept in memory"),
  minibatches: row(1, 1_048_576, "time", "a rollout has no more rows"),
  /** Parts into which a batch is cut for ranks. */
  slices: row(1, 1024, "memory", "each has gradients of its own"),
  units: row(1, 65_536, "memory", "the weights are a matrix"),
  /** Units of a layer that can be left out. */
  optionalUnits: row(0, 65_536, "memory", "the weights are a matrix"),
  /** Hidden layers that come before another part of a network. */
  layersBefore: row(0, 100, "nothing", "a network has no more hidden layers"),
  /** Length of an axis of an array. */
  axis: row(1, 16_777_216, "memory", "an array has so many numbers"),
  critics: row(1, 64, "memory", "each is a network"),
  atoms: row(1, 10_000, "memory", "each value has so many numbers"),
  pairs: row(1, 65_536, "memory", "each has a copy of the parameters"),
  simulations: row(1, 100_000, "memory", "each adds a node to the tree"),
  episodes: row(1, 100_000, "memory", "they are played at the same time"),
  frames: row(1, 1024, "memory", "each is kept"),
  /** Pictures of a video. */
  pictures: row(2, 100_000, "memory", "a file has them all"),
  /** Pixels on a side of a picture. */
  pixels: row(1, 4096, "memory", "a picture has a number for each"),
  cells: row(1, 1000, "memory", "a board has so many squared"),
  cellSize: row(1, 4096, "memory", "a picture has no more pixels on a side"),

  // Language models.
  modelUnits: row(1, 16_777_216, "memory", "the weights are a matrix"),
  modelLayers: row(1, 10_000, "memory", "each has weights of its own"),
  heads: row(1, 65_536, "memory", "each has weights of its own"),
  /** Tokens of a prompt with its answer. */
  positions: row(1, 1_048_576, "memory", "the cache holds all of them"),
  adapterRank: row(1, 4096, "memory", "the weights are a matrix"),
  adapters: row(1, 4096, "memory", "each has weights of its own"),
  adaptersOrNone: row(0, 4096, "memory", "each has weights of its own"),
  /** Rows of a batch of tokens, and answers that are generated in one step. */
  tokenRows: row(1, 4096, "memory", "the graph computes all at once"),
  page: row(1, 65_536, "memory", "a page is reserved as a whole"),
  samples: row(1, 1_000_000, "memory", "a step keeps all of them"),
  /** Groups of samples that a step plays in addition. */
  groupsOrNone: row(0, 100_000, "memory", "a step keeps all of them"),
  /** Requests of a server, with those that wait. */
  requests: row(1, 1_000_000, "memory", "each waits in memory"),

  // Tasks, agents and evaluations.
  tasks: row(1, 1_000_000, "memory", "a list holds all of them"),
  letters: row(1, 10_000, "memory", "a word has so many letters"),
  layouts: row(1, 1_000_000, "memory", "each is a board"),
  entries: row(1, 10_000_000, "memory", "all are kept in memory"),
  repeats: row(1, 10_000, "memory", "the report holds all of them"),
  /** Values of k for pass@k, which needs at least k repeats of each task. */
  passes: row(1, 10_000, "nothing", "an evaluation has no more repeats"),
  trials: row(1, 100_000, "memory", "a study holds all of them"),
  candidates: row(1, 10_000, "memory", "each is compared"),
  /** Runs that one command starts, one after another. */
  runs: row(1, 10_000, "memory", "each is a run with a folder of its own"),
  /** Rows of a table that is printed. */
  listed: row(1, 1_000_000, "memory", "each is a line"),

  // Numbers that only take time.
  /** Steps, episodes, updates, tokens or calls that are counted, or limits on them. */
  count: row(1, largest, "time", "it is counted exactly"),
  /** A count for which 0 means none. */
  countOrNone: row(0, largest, "time", "it is counted exactly"),
  /** Rounds of a loop whose counter or course has 32 bits. */
  rounds: row(1, 1_000_000, "time", "more would never end"),
  /** Passes over the data of a step, for all of which the step waits. */
  epochs: row(1, 1000, "time", "a step waits for all of them"),
  days: row(0, 100_000, "nothing", "the database has dates up to then"),
  /** Files to keep of those that were written. */
  kept: row(1, largest, "nothing", "it is counted exactly"),
  keptOrNone: row(0, largest, "nothing", "it is counted exactly"),
  /** The number of a token, a column or a choice, which must exist. */
  index: row(0, largest, "nothing", "it is counted exactly"),
  /** A step to go back to; −1 is the newest. */
  earlierStep: row(-1, largest, "nothing", "it is counted exactly"),
  seed: row(-largest, largest, "nothing", "it must be exact"),
} as const satisfies Readonly<Record<string, ResourceBound>>

/** The name of a row for whole numbers. */
export type BoundName = keyof typeof bounds

/** The bounds of numbers that need not be whole. */
export const realBounds = {
  /** A rate, a coefficient, a score: it is only computed with. */
  number: row(-Number.MAX_VALUE, Number.MAX_VALUE, "nothing", "it must be finite"),
  /** A time to wait. */
  seconds: row(0, 2_147_483, "timers", "timers have 31 bits of milliseconds, 24 days"),
  megabytes: row(0, 512, "memory", "a text has at most so many"),
  /** The size of all texts of a program together. */
  totalMegabytes: row(0, 1_048_576, "memory", "no machine has more memory"),
  /** Transitions with a replaced goal, for each one that is replayed with its own goal. */
  goals: row(0, 10_000, "memory", "each makes a row of a batch"),
} as const satisfies Readonly<Record<string, ResourceBound>>

export type RealBoundName = keyof typeof realBounds

/** The annotation in which a Schema names the row of its number. */
export const boundKey = "effect-rl/bound"
/**
 * The name that a Schema uses if no row applies, since the part itself bounds the number to a small range, such as the
 * hours of a day.
 */
export const ownBound = "own"
/** The largest number that a range with the name `ownBound` can have. */
export const mostOfOwn = 100_000

/** Says what is allowed, for messages: `a value between 1 and 256 (each is a process)`. */
export const allowed = ({ least, most, because }: ResourceBound): string =>
  most === largest ? `a value of at least ${least}` : `a value between ${least} and ${most} (${because})`

/** Returns what is wrong with a number, for messages; undefined if it is allowed. */
export const boundProblem = (name: BoundName, value: number): string | undefined => {
  const bound: ResourceBound = bounds[name]
  return Number.isSafeInteger(value) && value >= bound.least && value <= bound.most
    ? undefined
    : `expected ${allowed(bound)}, found ${value}`
}
