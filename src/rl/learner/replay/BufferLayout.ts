/** Describes a replay buffer, and how many steps and bytes it needs. */

/** Describes the sequences of steps that are drawn for a network with a memory. */
export interface SequenceOptions {
  /** The number of steps whose actions are learned from. */
  readonly length: number
  /** The number of earlier steps that only warm up the network's memory. */
  readonly burnIn: number
  /** The number of elements of an env's memory, which is stored where sequences begin. */
  readonly memorySize: number
}

export interface BufferLayout {
  readonly numEnvs: number
  readonly observationSize: number
  readonly actionSize: number
  /** The number of transitions to store, over all envs; rounded up to a multiple of the number of envs. */
  readonly capacity: number
  readonly gamma: number
  /** The number of steps that a transition spans; 1 by default. */
  readonly nsteps?: number
  /** Whether observations are images, which `Frames` stores in fewer bytes. */
  readonly images?: boolean
  /**
   * Whether draws may replace the goals of transitions (hindsight); then the buffer must know which steps form an
   * episode.
   */
  readonly hindsight?: boolean
  /** If set, the buffer draws sequences of steps instead of transitions. */
  readonly sequences?: SequenceOptions | undefined
}

/**
 * Returns how many steps after its first one a transition or sequence needs: they must be stored before it can be
 * drawn.
 */
export const spanOf = ({ nsteps = 1, sequences }: BufferLayout): number =>
  nsteps + (sequences === undefined ? 0 : sequences.burnIn + sequences.length - 1)

/**
 * Returns the number of steps from one possible beginning of a sequence to the next: half a sequence, so that each step
 * lies in two.
 */
export const strideOf = ({ sequences }: BufferLayout): number =>
  sequences === undefined ? 1 : Math.max(1, Math.floor(sequences.length / 2))

/**
 * Returns the number of steps to store for each env: the steps that can begin a draw, and the later ones that such a
 * draw needs.
 */
export const stepsPerEnvOf = (options: BufferLayout): number => {
  const stride = strideOf(options)
  return Math.ceil((Math.ceil(options.capacity / options.numEnvs) + spanOf(options)) / stride) * stride
}

/** Returns how many transitions or sequences a full buffer can draw from, at least. */
export const drawableIn = (options: BufferLayout): number =>
  options.numEnvs * Math.floor(Math.ceil(options.capacity / options.numEnvs) / strideOf(options))

/** Returns the bytes that a full buffer takes, without final observations, if images are stored as bytes. */
export const replayBytes = (options: BufferLayout): number => {
  const { numEnvs, observationSize, actionSize, images = false, sequences } = options
  const ofMemory = (4 * (sequences?.memorySize ?? 0)) / strideOf(options)
  return stepsPerEnvOf(options) * numEnvs * (observationSize * (images ? 1 : 4) + (actionSize + 2) * 4 + ofMemory)
}
