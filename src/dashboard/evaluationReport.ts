import { Option, Schema } from "effect"
import { toCamelCase } from "../config/Config.ts"
import { Report } from "../evaluate/Report.ts"

/** The means, intervals and comparisons of an evaluation, as its page has them. */
export const EvaluationReport = Schema.Struct({ ...Report.fields, confidence: Schema.Finite })
export type EvaluationReport = typeof EvaluationReport.Type

const Metrics = Schema.Struct({ report: Report, confidence: Schema.Finite })

/** From what its `metrics.json` holds; null where that has none. */
export const evaluationReport = (metrics: unknown): EvaluationReport | null =>
  Option.match(Schema.decodeUnknownOption(Metrics)(toCamelCase(metrics)), {
    onNone: () => null,
    onSome: ({ report, confidence }) => ({ ...report, confidence }),
  })
