import { messageOf } from "../../config/text.ts"

/** Runs a parser, and returns its value or its error message in one line. */
export const attempt = <A>(body: () => A): { readonly value: A } | { readonly problem: string } => {
  try {
    return { value: body() }
  } catch (error) {
    // Keep only the first line: the other lines of a YAML error draw the place of the problem.
    const [first] = (error instanceof Error ? error.message : messageOf(error)).split("\n")
    return { problem: first.replace(/:$/, "") }
  }
}
