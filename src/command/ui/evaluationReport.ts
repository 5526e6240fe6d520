/** Reads the report of an evaluation from the contents of its `metrics.json`, for the evaluation's page. */
import { Option, Schema } from "effect"
import { toCamelCase } from "../../base/config/Config.ts"
import { Report } from "../../agents/evaluate/report/Report.ts"

/** The Schema of an evaluation's means, intervals and comparisons, for the evaluation's page. */
const EvaluationReport = Schema.Struct({ ...Report.fields, confidence: Schema.Finite })
type EvaluationReport = typeof EvaluationReport.Type

const Metrics = Schema.Struct({ report: Report, confidence: Schema.Finite })

/** Decodes the report in the parsed `metrics.json`; null if it contains none. */
export const evaluationReport = (metrics: unknown): EvaluationReport | null =>
  Option.match(Schema.decodeUnknownOption(Metrics)(toCamelCase(metrics)), {
    onNone: () => null,
    onSome: ({ report, confidence }) => ({ ...report, confidence }),
  })
