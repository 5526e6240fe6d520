/**
 * Decides which tokens each step computes (continuous batching). It has no Effect: `makeEngine.ts` calls `plan`, runs the
 * program, and calls `apply`.
 *
 * Requests begin in the order of their arrival, while there is room for their prompts in the cache. Steps that read prompts, a
 * page of each, alternate with steps in which all requests that have read their prompts generate a token: so a long prompt
 * delays the others by one short step at a time. If the cache is full, the newest request gives its pages back and computes its tokens again
 * later.
 */
import { Exit } from "effect"
import { type Drawing, makeDrawing } from "./draw.ts"
import { type EngineError, engineError } from "./EngineError.ts"
import type { EngineStatus, Generated } from "./Engine.ts"
import type { Job } from "./Job.ts"
import type { PagedCache } from "./PagedCache.ts"
import type { StepModel, StepProgram } from "./StepModel.ts"
import type { Version, Versions } from "./Versions.ts"

export class Scheduler {
  readonly cache: PagedCache
  private readonly model: StepModel
  private readonly versions: Versions
  private readonly drawing: Drawing
  private readonly mostRunning: number
  private lastKind: "reading" | "decoding" = "decoding"
  /** Both lists are in the order of arrival. */
  private readonly waiting: Array<Job> = []
  private readonly running: Array<Job> = []
  private steps = 0
  private promptTokens = 0
  private cachedPromptTokens = 0
  private generatedTokens = 0
  private preemptions = 0

  constructor(model: StepModel, cache: PagedCache, versions: Versions, mostRunning: number) {
    this.model = model
    this.cache = cache
    this.versions = versions
    this.drawing = makeDrawing(model.vocabSize)
    this.mostRunning = Math.min(mostRunning, mostRows(model.decoding))
  }

  get status(): EngineStatus {
    const { steps, promptTokens, cachedPromptTokens, generatedTokens, preemptions } = this
    const [running, waiting] = [this.running.length, this.waiting.length]
    return {
      running,
      waiting,
      steps,
      promptTokens,
      cachedPromptTokens,
      generatedTokens,
      preemptions,
      pages: this.cache.counts,
    }
  }

  /** Returns whether a request has begun that has not ended. */
  get isBusy(): boolean {
    return this.running.length > 0 || this.waiting.some(({ version }) => version !== null)
  }

  add(job: Job): void {
    insert(this.waiting, job)
  }

  /** Ends a request: its pages are free for others, and its version of the weights has a user less. */
  end(job: Job, exit: Exit.Exit<Generated, EngineError>): void {
    if (job.state === "ended") return
    const list = job.state === "running" ? this.running : this.waiting
    list.splice(list.indexOf(job), 1)
    job.state = "ended"
    job.count = 0
    if (job.sequence !== null) this.cache.release(job.sequence)
    job.sequence = null
    if (job.version !== null) this.versions.give(job.version)
    job.onEnd(exit)
  }

  /** Ends all requests in the same way. */
  endAll(exit: Exit.Exit<Generated, EngineError>): void {
    for (const job of [...this.running, ...this.waiting]) this.end(job, exit)
  }

  /** Ends the requests of the step in progress, whose program failed. */
  fail(message: string): void {
    for (const job of this.running.filter(({ count }) => count > 0))
      this.end(job, Exit.fail(engineError(job.model, "backend", message)))
  }

  /**
   * Writes the inputs of the next step, and returns the program to run; null if there is nothing to compute. Requests begin
   * only if `mayBegin` says so for their model; those that have begun go on.
   */
  plan(mayBegin: (model: string) => boolean): StepProgram | null {
    this.admit(mayBegin)
    const kinds = this.lastKind === "decoding" ? readingFirst : decodingFirst
    for (const kind of kinds) {
      const programs = this.model[kind]
      let rows = mostRows(programs)
      for (const job of this.running) job.count = 0
      // A preemption removes only requests behind the one at `index`, or that one.
      for (let index = 0; index < this.running.length && rows > 0; index++) {
        const job = this.running[index]
        if (isReading(job) === (kind === "reading") && this.schedule(job)) rows--
      }
      const program = this.fillFeeds(programs)
      if (program === null) continue
      this.lastKind = kind
      return program
    }
    return null
  }

  /** Stores what the program computed, and draws the next tokens. Returns the number of requests that ended. */
  apply(program: StepProgram): void {
    this.steps++
    const { pageSize, vocabSize } = this.model
    // A copy, because requests that end leave the list.
    for (const job of this.running.slice()) {
      const { sequence, count, row } = job
      if (sequence === null || count === 0) continue
      const { length } = sequence
      program.store(row, count, sequence.pages[Math.floor(length / pageSize)].index, length % pageSize)
      this.cache.fill(sequence, count)
      job.count = 0
      if (sequence.length < job.known) continue
      const answer = job.next(this.drawing, program.logits, row * vocabSize)
      this.generatedTokens++
      if (answer !== undefined) this.end(job, "reason" in answer ? Exit.fail(answer) : Exit.succeed(answer))
    }
  }

  /** Lets requests begin, in the order of their arrival. */
  private admit(mayBegin: (model: string) => boolean): void {
    let promised = 0
    for (const { sequence, known } of this.running) {
      if (sequence !== null) promised += Math.max(0, this.pagesFor(known) - sequence.pages.length)
    }
    for (let index = 0; index < this.waiting.length && this.running.length < this.mostRunning;) {
      const job = this.waiting[index]
      if (job.version === null && !mayBegin(job.model)) {
        index++
        continue
      }
      const version = job.version ?? this.versions.find(job.model)
      if (version === undefined) {
        this.end(job, Exit.fail(engineError(job.model, "unknownModel", "it was unloaded before the request began")))
        continue
      }
      const needed = this.pagesFor(job.known) - this.cache.shared(version.root, job.ids, job.promptLength - 1)
      if (this.running.length > 0 && needed > this.cache.available - promised) return
      promised += needed
      this.waiting.splice(index, 1)
      this.begin(job, version)
    }
  }

  private begin(job: Job, version: Version): void {
    if (job.version === null) {
      this.versions.take(version)
      this.promptTokens += job.promptLength
    }
    job.version = version
    job.sequence = this.cache.begin(version.root, job.ids, job.promptLength - 1)
    job.state = "running"
    insert(this.running, job)
  }

  private pagesFor(tokens: number): number {
    return Math.ceil(tokens / this.model.pageSize)
  }

  /** Gives a request a row in the next step, and says whether it got one. */
  private schedule(job: Job): boolean {
    const { cache } = this
    const { sequence } = job
    if (sequence === null) return false
    let count = 1
    if (isReading(job)) {
      const before = sequence.length
      const waits = cache.reuse(sequence)
      this.cachedPromptTokens += sequence.length - before
      if (waits || !isReading(job)) return false
      count = Math.min(this.model.pageSize, sequence.prompt - sequence.length)
    }
    while (cache.extend(sequence, sequence.length + count) < sequence.length + count) {
      // The newest request gives way, if necessary this one.
      const newest = this.running[this.running.length - 1]
      this.preempt(newest)
      if (newest === job) return false
    }
    job.count = count
    return true
  }

  private preempt(job: Job): void {
    this.preemptions++
    if (job.sequence !== null) this.cache.release(job.sequence)
    job.sequence = null
    job.count = 0
    job.state = "waiting"
    this.running.splice(this.running.indexOf(job), 1)
    insert(this.waiting, job)
  }

  /** Writes the inputs of the smallest program that has a row for each scheduled request. */
  private fillFeeds(programs: ReadonlyArray<StepProgram>): StepProgram | null {
    let rows = 0
    let mostPages = 0
    for (const { sequence, count } of this.running) {
      if (sequence === null || count === 0) continue
      rows++
      mostPages = Math.max(mostPages, sequence.pages.length)
    }
    if (rows === 0) return null
    const program = programs.find((one) => one.rows >= rows && one.pagesPerRow >= mostPages)
    if (program === undefined) return null
    const { feeds, chunk, pagesPerRow } = program
    feeds.tokens.fill(0)
    feeds.lengths.fill(0)
    feeds.adapters.fill(-1)
    feeds.pages.fill(this.model.pages)
    let row = 0
    for (const job of this.running) {
      const { sequence, count } = job
      if (sequence === null || count === 0) continue
      job.row = row
      const { length, pages } = sequence
      for (let index = 0; index < count; index++) feeds.tokens[row * chunk + index] = job.ids[length + index]
      feeds.lengths[row] = length
      feeds.adapters[row] = job.version?.slot ?? -1
      for (let page = 0; page < pages.length; page++) feeds.pages[row * pagesPerRow + page] = pages[page].index
      row++
    }
    return program
  }
}

const readingFirst = ["reading", "decoding"] as const
const decodingFirst = ["decoding", "reading"] as const

const mostRows = (programs: ReadonlyArray<StepProgram>): number => programs[programs.length - 1].rows

/**
 * Says whether a running request still reads its prompt. The last token of the prompt is computed as the generated ones are:
 * it gives the logits of the first token, and the tokens before it are shared by all requests with the same prompt.
 */
const isReading = ({ sequence }: Job): boolean => sequence !== null && sequence.length < sequence.prompt

/** Inserts a request into a list in the order of arrival. */
const insert = (jobs: Array<Job>, job: Job): void => {
  let at = jobs.length
  while (at > 0 && jobs[at - 1].order > job.order) at--
  jobs.splice(at, 0, job)
}
