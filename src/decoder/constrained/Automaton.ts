/**
 * Runs networks on the bytes of a text. A state of the automaton is a set of threads, each with the calls that it has to
 * return from. States and their transitions are made when they are first reached, and kept for later texts.
 */
import type { AutomatonState, Stack, Thread } from "./AutomatonState.ts"
import { formatError, mostDepth, type Networks } from "./Network.ts"
import { StateStore } from "./StateStore.ts"

/** The largest number of threads of a state. Only a schema with many ways to read the same text needs more than a few. */
const mostThreads = 1024
/** How many threads may be followed for one token: about a second's work, during which the server answers nobody else. */
const mostWork = 1_000_000

/** The threads of a state while it is made. */
interface Closing {
  /** The threads that were reached, by their keys. */
  readonly seen: Set<string>
  readonly waiting: Array<Thread>
  /** The reached threads that read a byte next. */
  readonly reading: Map<string, Thread>
  isEnd: boolean
}

const keyOf = ({ state, stack }: Thread): string => `${state} ${stack?.id ?? ""}`

export class Automaton {
  /** The states that are kept, and the room for masks. */
  readonly kept = new StateStore()
  private readonly networks: Networks
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
    if (this.kept.isFull) return reached
    from.next ??= Array.from<AutomatonState | null | undefined>({ length: 256 })
    from.next.fill(reached, first, last + 1)
    return reached
  }

  /** Follows the transitions that read nothing, and returns the state of the threads that read a byte next. */
  private closed(threads: ReadonlyArray<Thread>): AutomatonState {
    const closing: Closing = { seen: new Set(), waiting: [], reading: new Map(), isEnd: false }
    for (const { state, stack } of threads) this.reach(closing, state, stack)
    for (let thread = closing.waiting.pop(); thread !== undefined; thread = closing.waiting.pop())
      this.followEmpty(closing, thread)
    const { seen, reading, isEnd } = closing
    this.spend(seen.size)
    if (reading.size > mostThreads) throw formatError(this.networks.name, tooAmbiguous)
    return this.kept.state(reading, isEnd)
  }

  /** Adds a thread, unless it was reached before. */
  private reach({ seen, waiting }: Closing, state: number, stack: Stack | null): void {
    // A thread that would need more calls than are left could not end.
    if ((stack?.depth ?? 0) + this.networks.needs[state] > mostDepth) return
    const thread = { state, stack }
    const key = keyOf(thread)
    if (seen.has(key)) return
    seen.add(key)
    if (seen.size > mostThreads * 8) throw formatError(this.networks.name, tooAmbiguous)
    waiting.push(thread)
  }

  /** Follows the transitions of a thread that read nothing, begins its calls, and returns from a call that ends. */
  private followEmpty(closing: Closing, thread: Thread): void {
    const { ranges, jumps, calls, ends, needs, isLast } = this.networks
    const { state, stack } = thread
    if (ranges[state].length > 0) closing.reading.set(keyOf(thread), thread)
    for (const to of jumps[state]) this.reach(closing, to, stack)
    for (const { network, to } of calls[state]) {
      if ((stack?.depth ?? 0) + needs[to] > mostDepth) continue
      this.reach(closing, ends[network].first, this.kept.push(stack, to))
    }
    if (!isLast[state]) return
    if (stack === null) closing.isEnd = true
    else this.reach(closing, stack.to, stack.parent)
  }

  private spend(threads: number): void {
    this.work += threads
    if (this.work > mostWork) throw formatError(this.networks.name, tooAmbiguous)
  }
}

const tooAmbiguous = "the same text can be read in too many ways; make alternatives differ in their beginnings"
