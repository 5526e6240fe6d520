/**
 * The attributes of the GenAI semantic conventions of OpenTelemetry that are not deprecated, without those for audio, images and
 * memories, and a tracer that keeps the spans of a test.
 */
import { Option, Tracer } from "effect"

export const conventionNames: ReadonlySet<string> = new Set([
  "gen_ai.agent.description",
  "gen_ai.agent.id",
  "gen_ai.agent.name",
  "gen_ai.agent.version",
  "gen_ai.conversation.id",
  "gen_ai.data_source.id",
  "gen_ai.embeddings.dimension.count",
  "gen_ai.evaluation.explanation",
  "gen_ai.evaluation.name",
  "gen_ai.evaluation.score.label",
  "gen_ai.evaluation.score.value",
  "gen_ai.input.messages",
  "gen_ai.operation.name",
  "gen_ai.output.messages",
  "gen_ai.output.type",
  "gen_ai.prompt.name",
  "gen_ai.provider.name",
  "gen_ai.request.choice.count",
  "gen_ai.request.encoding_formats",
  "gen_ai.request.frequency_penalty",
  "gen_ai.request.max_tokens",
  "gen_ai.request.model",
  "gen_ai.request.presence_penalty",
  "gen_ai.request.seed",
  "gen_ai.request.stop_sequences",
  "gen_ai.request.stream",
  "gen_ai.request.temperature",
  "gen_ai.request.top_k",
  "gen_ai.request.top_p",
  "gen_ai.response.finish_reasons",
  "gen_ai.response.id",
  "gen_ai.response.model",
  "gen_ai.response.time_to_first_chunk",
  "gen_ai.retrieval.documents",
  "gen_ai.retrieval.query.text",
  "gen_ai.system_instructions",
  "gen_ai.token.type",
  "gen_ai.tool.call.arguments",
  "gen_ai.tool.call.id",
  "gen_ai.tool.call.result",
  "gen_ai.tool.definitions",
  "gen_ai.tool.description",
  "gen_ai.tool.name",
  "gen_ai.tool.type",
  "gen_ai.usage.cache_creation.input_tokens",
  "gen_ai.usage.cache_read.input_tokens",
  "gen_ai.usage.input_tokens",
  "gen_ai.usage.output_tokens",
  "gen_ai.usage.reasoning.output_tokens",
  "gen_ai.workflow.name",
])

export interface KeptSpan {
  readonly name: string
  readonly kind: Tracer.SpanKind
  /** The names of the spans around it, the outermost first. */
  readonly around: ReadonlyArray<string>
  readonly span: Tracer.NativeSpan
}

const namesAround = (parent: Tracer.AnySpan | undefined): ReadonlyArray<string> => {
  if (parent === undefined) return []
  if (parent._tag === "ExternalSpan") return ["external"]
  return [...namesAround(Option.getOrUndefined(parent.parent)), parent.name]
}

/** Makes a tracer, and the list of the spans that it makes. */
export const keptSpans = () => {
  const spans: Array<KeptSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      const around = namesAround(Option.getOrUndefined(options.parent))
      spans.push({ name: options.name, kind: options.kind, around, span })
      return span
    },
  })
  /** Returns the only span with this name. */
  const only = (name: string): KeptSpan => {
    const all = spans.filter((span) => span.name === name)
    if (all.length !== 1)
      throw new Error(`expected one span ${name}, found ${spans.map(({ name }) => name).join(", ")}`)
    return all[0]
  }
  return { tracer, spans, only }
}
