/**
 * Decides which tokens each step computes (continuous batching). It has no Effects: `makeEngine.ts` calls `plan`, runs the
 * program, and calls `apply`.
 *
 * Requests begin in the order of arrival, while the cache has room for their prompts. Steps that read a page of each prompt
 * alternate with steps that generate a token for each request whose prompt is read. So a long prompt delays the other
 * requests only by one short step at a time.
 */
import { Exit } from "effect"
import { type TokenDraw, makeDrawing } from "./draw.ts"
import { type EngineError, engineError } from "./EngineError.ts"
import type { EngineStatus, Generated } from "./EngineService.ts"
import type { EngineJob } from "./Job.ts"
import type { PagedCache, Sequence } from "./PagedCache.ts"
import type { EmbeddingProgram, GeneratingProgram, ReadingProgram, StepFeeds, StepModel } from "./StepModel.ts"
import type { Version, ModelVersions } from "./Versions.ts"
import { highest } from "../../base/statistics/extremes.ts"

export class Scheduler {
  readonly cache: PagedCache
  private readonly model: StepModel
  private readonly versions: ModelVersions
  private readonly drawing: TokenDraw
  private readonly mostRunning: number
  private lastKind: PlannedStep["kind"] = "generating"
  /** The kind of the last step that read texts: prompts, or those of embeddings. */
  private lastRead: "reading" | "embedding" = "embedding"
  /** The requests that wait and those that have begun, each in the order of arrival. */
  private readonly waiting: Array<EngineJob> = []
  private readonly running: Array<EngineJob> = []
  /** The requests that generate, by their row of the cache. */
  private readonly rows: Array<EngineJob | null>
  private steps = 0
  private promptTokens = 0
  private cachedPromptTokens = 0
  private generatedTokens = 0

  constructor(model: StepModel, cache: PagedCache, versions: ModelVersions, mostRunning: number) {
    this.model = model
    this.cache = cache
    this.versions = versions
    this.drawing = makeDrawing(model.vocabSize)
    this.rows = new Array<null>(mostRows(model.generating)).fill(null)
    this.mostRunning = Math.min(mostRunning, this.rows.length)
  }

  get status(): EngineStatus {
    const { steps, promptTokens, cachedPromptTokens, generatedTokens } = this
    const [running, waiting] = [this.running.length, this.waiting.length]
    return {
      running,
      waiting,
      steps,
      promptTokens,
      cachedPromptTokens,
      generatedTokens,
      pages: this.cache.counts,
    }
  }

  /** Tells whether a request has begun and not ended. */
  get isBusy(): boolean {
    return this.running.length > 0
  }

  add(job: EngineJob): void {
    insert(this.waiting, job)
  }

  /** Ends a request: frees its pages and its row, and releases its version of the weights. */
  end(job: EngineJob, exit: Exit.Exit<Generated, EngineError>): void {
    if (job.state === "ended") return
    const list = job.state === "running" ? this.running : this.waiting
    list.splice(list.indexOf(job), 1)
    job.state = "ended"
    job.count = 0
    if (job.sequence !== null) this.cache.release(job.sequence)
    job.sequence = null
    if (job.row !== -1) this.rows[job.row] = null
    if (job.version !== null) this.versions.give(job.version)
    job.onEnd(exit)
  }

  /** Ends all requests in the same way. */
  endAll(exit: Exit.Exit<Generated, EngineError>): void {
    for (const job of [...this.running, ...this.waiting]) this.end(job, exit)
  }

  /** Ends the requests in the current step, because its program failed. */
  fail(message: string): void {
    for (const job of this.running.filter(({ count }) => count > 0))
      this.end(job, Exit.fail(engineError(job.model, "backend", message)))
  }

  /**
   * Writes the inputs of the next step, and returns the program to run; null if there is nothing to compute. New requests
   * begin only if `mayBegin` returns true for their model.
   */
  plan(mayBegin: (model: string) => boolean): PlannedStep | null {
    this.admit(mayBegin)
    for (const job of this.running) job.count = 0
    const first = this.lastKind === "generating" ? null : this.planGenerating()
    // A prompt that is completely in the cache needs no step to be read, so its request can generate now.
    return first ?? this.planPages() ?? this.planGenerating()
  }

  /** Stores the results of the program, and draws the next tokens. */
  apply(step: PlannedStep): void {
    this.steps++
    this.lastKind = step.kind
    if (step.kind === "generating") return this.applyGenerating(step.program)
    this.lastRead = step.kind
    this.applyReading(step.program)
    if (step.kind === "embedding") this.applyEmbedding(step.program)
  }

  private applyReading(program: ReadingProgram): void {
    const { pageSize } = this.model
    for (const { sequence, count, readingRow } of this.running) {
      if (sequence === null || count === 0) continue
      const { length, pages } = sequence
      program.store(readingRow, count, pages[Math.floor(length / pageSize)].index, length % pageSize)
      this.cache.fill(sequence, count)
    }
  }

  /** Collects the hidden states of a step, and ends the requests whose texts are read. */
  private applyEmbedding({ hidden, rows }: EmbeddingProgram): void {
    for (const job of this.running.slice()) {
      if (job.count === 0) continue
      job.pool?.add(hidden, job.readingRow * (hidden.length / rows), job.count)
      if (job.sequence !== null && hasRead(job, job.sequence)) this.end(job, job.endPool())
    }
  }

  private applyGenerating(program: GeneratingProgram): void {
    // Iterate over a copy, because requests that end are removed from the list.
    for (const job of this.running.slice()) {
      if (job.count === 0) continue
      program.store(job.row, job.cached)
      if (job.isGenerating) this.generatedTokens++
      const answer = job.next(this.drawing, program.logits, job.row * this.model.vocabSize)
      if (answer !== undefined) this.end(job, "reason" in answer ? Exit.fail(answer) : Exit.succeed(answer))
    }
  }

  /** Lets waiting requests begin, in the order of arrival. */
  private admit(mayBegin: (model: string) => boolean): void {
    let promised = 0
    for (const { sequence, readLength } of this.running)
      if (sequence !== null) promised += this.pagesFor(readLength) - sequence.pages.length
    for (let index = 0; index < this.waiting.length && this.running.length < this.mostRunning;) {
      const job = this.waiting[index]
      if (!mayBegin(job.model)) {
        index++
        continue
      }
      const version = this.versions.find(job.model)
      if (version === undefined) {
        this.end(job, Exit.fail(engineError(job.model, "unknownModel", "it was unloaded before the request began")))
        continue
      }
      const prompt = job.readLength
      const needed = this.pagesFor(prompt) - this.cache.shared(version.root, job.ids, sharedLength(job))
      if (this.running.length > 0 && needed > this.cache.available - promised) return
      promised += needed
      this.waiting.splice(index, 1)
      this.begin(job, version)
    }
  }

  private begin(job: EngineJob, version: Version): void {
    this.versions.take(version)
    this.promptTokens += job.promptLength
    job.version = version
    job.sequence = this.cache.begin(version.root, job.ids, sharedLength(job))
    job.state = "running"
    insert(this.running, job)
  }

  private pagesFor(tokens: number): number {
    return Math.ceil(tokens / this.model.pageSize)
  }

  /** Plans a step that reads prompts, or texts for embeddings; in turn, if there are both. */
  private planPages(): PlannedStep | null {
    return this.lastRead === "reading"
      ? (this.planEmbedding() ?? this.planReading())
      : (this.planReading() ?? this.planEmbedding())
  }

  private planReading(): PlannedStep | null {
    const { reading } = this.model
    const jobs = this.readersFor(mostRows(reading), ({ pool }) => pool === undefined)
    const program = reading.find(({ rows }) => rows >= jobs.length)
    if (jobs.length === 0 || program === undefined) return null
    this.feedPages(jobs, program)
    return { kind: "reading", program }
  }

  private planEmbedding(): PlannedStep | null {
    const { embedding } = this.model
    if (embedding.length === 0) return null
    const jobs = this.readersFor(mostRows(embedding), ({ pool }) => pool !== undefined)
    const program = embedding.find(({ rows }) => rows >= jobs.length)
    if (jobs.length === 0 || program === undefined) return null
    this.feedPages(jobs, program)
    return { kind: "embedding", program }
  }

  /** Chooses the requests of one kind that read in the next step. */
  private readersFor(rows: number, isOfKind: (job: EngineJob) => boolean): ReadonlyArray<EngineJob> {
    const jobs: Array<EngineJob> = []
    for (const job of this.running) if (jobs.length < rows && isOfKind(job) && this.schedule(job)) jobs.push(job)
    return jobs
  }

  /** Writes the inputs of a step that reads. */
  private feedPages(jobs: ReadonlyArray<EngineJob>, program: ReadingProgram): void {
    const { pages: noPage } = this.model
    const { feeds, pagesPerRow, rows } = program
    clear(feeds)
    feeds.pages.fill(noPage)
    jobs.forEach((job, row) => {
      const { count, ids, sequence, version } = job
      if (sequence === null) return
      const { length, pages } = sequence
      job.readingRow = row
      const chunk = feeds.tokens.length / rows
      for (let index = 0; index < count; index++) feeds.tokens[row * chunk + index] = ids[length + index]
      feeds.lengths[row] = length
      feeds.adapters[row] = version?.slot ?? -1
      for (let page = 0; page < pages.length; page++) feeds.pages[row * pagesPerRow + page] = pages[page].index
    })
  }

  /** Decides how many tokens of its prompt a request reads in the next step. Returns whether there are any. */
  private schedule(job: EngineJob): boolean {
    const { sequence } = job
    if (sequence === null || hasRead(job, sequence)) return false
    const before = sequence.length
    const waits = this.cache.reuse(sequence)
    this.cachedPromptTokens += sequence.length - before
    if (waits || hasRead(job, sequence)) return false
    const count = Math.min(this.model.pageSize, job.readLength - sequence.length)
    // A request begins only when there is room for its whole prompt, so this always succeeds.
    job.count = this.cache.extend(sequence, sequence.length + count) - sequence.length
    return job.count > 0
  }

  /** Plans a step that generates a token for each request whose prompt is read. */
  private planGenerating(): PlannedStep | null {
    for (const job of this.running)
      if (job.sequence !== null && hasRead(job, job.sequence)) this.seat(job, job.sequence)
    const jobs = this.running.filter(({ row }) => row !== -1)
    const longest = highest(jobs.map(({ cached }) => cached))
    const program = this.model.generating.find(
      ({ rows, room, longRows, shortRoom }) =>
        rows >= jobs.length && room >= longest && jobs.filter(({ cached }) => cached > shortRoom).length <= longRows,
    )
    if (jobs.length === 0 || program === undefined) return null
    this.place(jobs, program)
    const { feeds } = program
    clear(feeds)
    for (const job of jobs) {
      job.count = 1
      feeds.tokens[job.row] = job.ids[job.known - 1]
      feeds.lengths[job.row] = job.cached
      feeds.adapters[job.row] = job.version?.slot ?? -1
    }
    return { kind: "generating", program }
  }

  /** Assigns a row of the cache to a request whose prompt is read. Its pages stay in the cache until their room is needed. */
  private seat(job: EngineJob, sequence: Sequence): void {
    job.row = this.rows.indexOf(null)
    this.rows[job.row] = job
    this.model.fillRow(
      job.row,
      sequence.pages.map(({ index }) => index),
      sequence.length,
    )
    this.cache.release(sequence)
    job.sequence = null
  }

  /** Moves requests to rows of the program, and long sequences to the rows that have room for them. */
  private place(jobs: ReadonlyArray<EngineJob>, { rows, longRows, shortRoom }: GeneratingProgram): void {
    const isLong = ({ cached }: EngineJob): boolean => cached > shortRoom
    for (const job of jobs) {
      if (job.row >= longRows && isLong(job))
        this.swap(
          job,
          this.rows.findIndex((other) => other === null || !isLong(other)),
        )
    }
    for (const job of jobs) if (job.row >= rows) this.swap(job, this.rows.indexOf(null))
  }

  /** Exchanges the row of a request with another row, which may be empty. */
  private swap(job: EngineJob, to: number): void {
    const { row: from } = job
    const other = this.rows[to]
    this.model.swapRows(from, to)
    this.rows[to] = job
    this.rows[from] = other
    job.row = to
    if (other !== null) other.row = from
  }
}

/** A step that is ready to run. */
type PlannedStep =
  | { readonly kind: "reading"; readonly program: ReadingProgram }
  | { readonly kind: "embedding"; readonly program: EmbeddingProgram }
  | { readonly kind: "generating"; readonly program: GeneratingProgram }

const clear = ({ adapters, lengths, tokens }: StepFeeds): void => {
  tokens.fill(0)
  lengths.fill(0)
  adapters.fill(-1)
}

/** Returns the most rows of these programs. */
const mostRows = (programs: ReadonlyArray<{ readonly rows: number }>): number => programs[programs.length - 1].rows

/**
 * Tells whether a prompt is read. Its last token is not included, because it is computed like generated tokens: it gives the
 * logits of the first one. The tokens before it are shared by all requests with the same prompt.
 */
const hasRead = ({ readLength }: EngineJob, { length }: Sequence): boolean => length >= readLength

/** Returns the number of prompt tokens that can be shared: none for an embedding, which needs each token's hidden state. */
const sharedLength = ({ pool, readLength }: EngineJob): number => (pool === undefined ? readLength : 0)

/** Inserts a request into a list in the order of arrival. */
const insert = (jobs: Array<EngineJob>, job: EngineJob): void => {
  let at = jobs.length
  while (at > 0 && jobs[at - 1].order > job.order) at--
  jobs.splice(at, 0, job)
}
