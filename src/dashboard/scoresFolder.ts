import * as Layout from "../run/Layout.ts"

/**
 * Where a run's scores are, from the text of its `config.yaml`: an experiment can say so. Of those that are elsewhere than
 * in the run's folder there are none, as nothing outside of the results is read.
 */
export const scoresIn = (config: string | undefined): Layout.Places => {
  const said = /^ {2}scores_path: (.+)$/m
    .exec(config ?? "")?.[1]
    ?.trim()
    .replace(/^(["'])(.*)\1$/, "$2")
  return Layout.places({ scores: said === undefined || said === "null" || said.startsWith("/") ? null : said })
}
