/** Defines the states of an automaton: sets of threads, each with the calls that it has to return from. */

/** The calls of a thread: the state after the innermost one, and the calls around it. */
export interface Stack {
  readonly id: number
  readonly depth: number
  readonly to: number
  readonly parent: Stack | null
}

export interface Thread {
  readonly state: number
  readonly stack: Stack | null
}

export class AutomatonState {
  readonly threads: ReadonlyArray<Thread>
  /** Whether the text can end here. */
  readonly isEnd: boolean
  /** The next state for each byte that was tried; null if the byte cannot follow. */
  next: Array<AutomatonState | null | undefined> | undefined = undefined
  /** The tokens that can follow, one bit for each; undefined until they are needed. */
  mask: Uint32Array | undefined = undefined

  constructor(threads: ReadonlyArray<Thread>, isEnd: boolean) {
    this.threads = threads
    this.isEnd = isEnd
  }

  /** Whether no byte can follow. */
  get isClosed(): boolean {
    return this.threads.length === 0
  }
}
