/**
 * Runs networks on the bytes of a text. A state of the automaton is a set of threads, each with the calls that it has to
 * return from. States and their transitions are made when they are first reached, and kept for later texts.
 */
import type { Networks } from "./Network.ts"
import { formatError } from "./Network.ts"

/** The largest number of calls inside each other, so of values in a JSON text. */
const mostDepth = 64
/** The largest number of threads of a state. Only a schema with many ways to read the same text needs more than a few. */
const mostThreads = 1024
/** The number of states that are kept, and the number of bytes of their masks. */
const mostKept = 20_000
const mostMaskBytes = 64 * 2 ** 20

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
  readonly next = new Map<number, AutomatonState | null>()
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
  private states = new Map<string, AutomatonState>()
  private stacks = new Map<string, Stack>()
  private stackCount = 0
  private maskBytes = 0

  constructor(networks: Networks) {
    this.networks = networks
  }

  /** Returns the state before the first byte. */
  start(): AutomatonState {
    // Nothing refers to a state across texts, so all of them can be made anew if there are too many.
    if (this.states.size > mostKept || this.maskBytes > mostMaskBytes) {
      for (const state of this.states.values()) state.next.clear()
      this.states = new Map()
      this.stacks = new Map()
      this.maskBytes = 0
    }
    return this.closed([{ state: this.networks.ends[0].first, stack: null }])
  }

  /** Tells whether there is room to keep another mask, and counts it. */
  keepsMask({ byteLength }: Uint32Array): boolean {
    if (this.maskBytes > mostMaskBytes) return false
    this.maskBytes += byteLength
    return true
  }

  /** Returns the state after a byte; null if the byte cannot follow. */
  step(from: AutomatonState, byte: number): AutomatonState | null {
    const known = from.next.get(byte)
    if (known !== undefined) return known
    const threads: Array<Thread> = []
    for (const { state, stack } of from.threads) {
      for (const { least, most, to } of this.networks.ranges[state])
        if (byte >= least && byte <= most) threads.push({ state: to, stack })
    }
    const next = threads.length === 0 ? null : this.closed(threads)
    const reached = next !== null && (next.isEnd || !next.isClosed) ? next : null
    if (this.states.size <= mostKept) from.next.set(byte, reached)
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
    if (reading.size > mostThreads) throw formatError("schema", tooAmbiguous)
    const key = `${[...reading.keys()].sort().join()}${isEnd ? "." : ""}`
    const known = this.states.get(key)
    if (known !== undefined) return known
    const state = new AutomatonState([...reading.values()], isEnd)
    if (this.states.size <= mostKept) this.states.set(key, state)
    return state
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

const tooAmbiguous = "the same text can be read in too many ways; make alternatives differ in their first properties"
