import { messageOf } from "../../base/text/text.ts"

/** Calls `body`, such as a parser of a run's file. Returns its value or, if it throws, the message as one line. */
export const attempt = <A>(body: () => A): { readonly value: A } | { readonly problem: string } => {
  try {
    return { value: body() }
  } catch (error) {
    // Keep only the first line: the other lines of a YAML error show the text around the problem.
    const [first] = (error instanceof Error ? error.message : messageOf(error)).split("\n")
    return { problem: first.replace(/:$/, "") }
  }
}
