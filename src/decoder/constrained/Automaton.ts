/**
 * Runs networks on the bytes of a text. A state of the automaton is a set of threads, each with the calls that it has to
 * return from. States and their transitions are made when they are first reached, and kept for later texts.
 */
import type { Networks } from "./Network.ts"
import { formatError, mostDepth } from "./Network.ts"

/** The largest number of threads of a state. Only a schema with many ways to read the same text needs more than a few. */
const mostThreads = 1024
/** How many threads may be followed for one token: about a second's work, during which the server answers nobody else. */
const mostWork = 1_000_000
/** The largest size of the states and masks that are kept, in bytes. */
const mostKeptBytes = 16 * 2 ** 20
/** About the size of a state with its transitions, and of each of its threads, in bytes. */
const stateBytes = 2300
const threadBytes = 96

/** The calls of a thread: the state after the innermost one, and the calls around it. */
interface Stack {
  readonly id: number
  readonly depth: number
  readonly to: number
  readonly parent: Stack | null
}

interface Thread {
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

export class Automaton {
  private readonly networks: Networks
  private readonly states = new Map<string, AutomatonState>()
  private readonly stacks = new Map<string, Stack>()
  private stackCount = 0
  private keptBytes = 0
  private isFull = false
  /** The number of threads that were followed for the current token. */
  private work = 0

  constructor(networks: Networks) {
    this.networks = networks
  }

  /** Returns the state before the first byte. */
  start(): AutomatonState {
    this.beginToken()
    return this.closed([{ state: this.networks.ends[0].first, stack: null }])
  }

  /** Begins to count the work for the next token. */
  beginToken(): void {
    this.work = 0
  }

  /** Makes room to keep states and masks. If little is left, all are forgotten and made anew when they are needed. */
  makeRoom(): void {
    if (this.keptBytes < mostKeptBytes / 2) return
    // A text still has its current state, which must not keep the others in memory.
    for (const state of this.states.values()) state.next = undefined
    this.states.clear()
    this.stacks.clear()
    this.keptBytes = 0
    this.isFull = false
  }

  /** Counts bytes that are to be kept. Returns whether there is room for them. */
  keeps(bytes: number): boolean {
    if (this.keptBytes + bytes > mostKeptBytes) this.isFull = true
    if (!this.isFull) this.keptBytes += bytes
    return !this.isFull
  }

  /** Returns the state after a byte; null if the byte cannot follow. */
  step(from: AutomatonState, byte: number): AutomatonState | null {
    const known = from.next?.[byte]
    return known === undefined ? this.follow(from, byte) : known
  }

  /** Computes the state after a byte. All bytes from `first` to `last` lead to it. */
  private follow(from: AutomatonState, byte: number): AutomatonState | null {
    const threads: Array<Thread> = []
    this.spend(from.threads.length)
    let [first, last] = [0, 255]
    for (const { state, stack } of from.threads) {
      for (const { least, most, to } of this.networks.ranges[state]) {
        if (most < byte) first = Math.max(first, most + 1)
        else if (least > byte) last = Math.min(last, least - 1)
        else {
          threads.push({ state: to, stack })
          first = Math.max(first, least)
          last = Math.min(last, most)
        }
      }
    }
    const next = threads.length === 0 ? null : this.closed(threads)
    const reached = next !== null && (next.isEnd || !next.isClosed) ? next : null
    if (this.isFull) return reached
    from.next ??= Array.from<AutomatonState | null | undefined>({ length: 256 })
    from.next.fill(reached, first, last + 1)
    return reached
  }

  /** Follows the transitions that read nothing, and returns the state of the threads that read a byte next. */
  private closed(threads: ReadonlyArray<Thread>): AutomatonState {
    const { networks } = this
    const seen = new Set<string>()
    const reading = new Map<string, Thread>()
    const waiting: Array<Thread> = []
    let isEnd = false
    const add = (state: number, stack: Stack | null): void => {
      const depth = stack?.depth ?? 0
      // A thread that would need more calls than are left could not end.
      if (depth + networks.needs[state] > mostDepth) return
      const key = `${state} ${stack?.id ?? ""}`
      if (seen.has(key)) return
      seen.add(key)
      if (seen.size > mostThreads * 8) throw formatError("schema", tooAmbiguous)
      waiting.push({ state, stack })
    }
    for (const { state, stack } of threads) add(state, stack)
    for (let thread = waiting.pop(); thread !== undefined; thread = waiting.pop()) {
      const { state, stack } = thread
      if (networks.ranges[state].length > 0) reading.set(`${state} ${stack?.id ?? ""}`, thread)
      for (const to of networks.jumps[state]) add(to, stack)
      for (const { network, to } of networks.calls[state]) {
        if ((stack?.depth ?? 0) + networks.needs[to] > mostDepth) continue
        add(networks.ends[network].first, this.push(stack, to))
      }
      if (!networks.isLast[state]) continue
      if (stack === null) isEnd = true
      else add(stack.to, stack.parent)
    }
    this.spend(seen.size)
    if (reading.size > mostThreads) throw formatError("schema", tooAmbiguous)
    const key = `${[...reading.keys()].sort().join()}${isEnd ? "." : ""}`
    const known = this.states.get(key)
    if (known !== undefined) return known
    const state = new AutomatonState([...reading.values()], isEnd)
    if (this.keeps(stateBytes + threadBytes * reading.size)) this.states.set(key, state)
    return state
  }

  private spend(threads: number): void {
    this.work += threads
    if (this.work > mostWork) throw formatError("schema", tooAmbiguous)
  }

  private push(parent: Stack | null, to: number): Stack {
    const key = `${to} ${parent?.id ?? ""}`
    const known = this.stacks.get(key)
    if (known !== undefined) return known
    const stack = { id: this.stackCount++, depth: (parent?.depth ?? 0) + 1, to, parent }
    this.stacks.set(key, stack)
    return stack
  }
}

const tooAmbiguous = "the same text can be read in too many ways; make alternatives differ in their beginnings"
