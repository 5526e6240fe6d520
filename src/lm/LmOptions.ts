// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `LmConfig.make`. */
export interface LmOptions {
  /**
   * Its name says whom to ask: gpt-…, o1 …, gemini…, claude…, or vllm:, toka:, scripted:, builtin: before a name.
   */
  readonly model: string

  /**
   * 0: what is likeliest; 1: as likely as the model thinks.
   *
   * @default 0.2
   */
  readonly temperature?: number

  /**
   * An answer is cut off there, and then isn't acted upon.
   *
   * @default 2048
   */
  readonly maxOutputTokens?: number

  /**
   * Every call as a file below `llm_calls/`.
   *
   * @default false
   */
  readonly logCalls?: boolean

  /**
   * How often a call is tried again after a failure that may pass.
   *
   * @default 5
   */
  readonly maxRetries?: number

  /**
   * In seconds: how long is waited before the first retry.
   *
   * @default 1
   */
  readonly startingDelay?: number

  /**
   * What each wait is multiplied by for the next.
   *
   * @default 2
   */
  readonly backoffFactor?: number

  /**
   * In seconds: no wait is longer, unless a server asks for one, of up to a minute.
   *
   * @default 10
   */
  readonly maxDelay?: number

  /**
   * Where the server is; null: where the model's provider is.
   *
   * @default null
   */
  readonly baseUrl?: string | null

  /**
   * How the server is spoken to; null: as the model's name says.
   *
   * @default null
   */
  readonly protocol?: "openai" | "anthropic" | null

  /**
   * Better in the environment; `${NAME}` names a variable there.
   *
   * @default null
   */
  readonly apiKey?: string | null

  /**
   * In seconds: how long one try may take.
   *
   * @default 900
   */
  readonly timeoutS?: number

  /**
   * In megabytes: a longer answer of a server is refused before it fills the memory.
   *
   * @default 64
   */
  readonly maxAnswerMb?: number

  /**
   * Where an answer ends.
   *
   * @default []
   */
  readonly stopSequences?: ReadonlyArray<string> | null

  /**
   * How many tokens a model may think before it answers, where it can; null: as the server likes.
   *
   * @default null
   */
  readonly thinkingBudget?: number | null

  /**
   * Models are always asked over HTTP; read so that files that say so are.
   *
   * @default null
   */
  readonly useServer?: boolean | null

  /**
   * `record`: asked once, answered from files ever after; `replay`: from files alone.
   *
   * @default "off"
   */
  readonly cache?: "record" | "replay" | "off"

  /**
   * Where answers are kept.
   *
   * @default "lm_cache"
   */
  readonly cacheDir?: string

  /**
   * How much may be asked at once, and in a minute.
   */
  readonly limits?: {
    /**
     * Calls at the same time; null: as many as come.
     *
     * @default null
     */
    readonly concurrency?: number | null
    /**
     * Sent, with those that are tried again; null: no limit.
     *
     * @default null
     */
    readonly requestsPerMinute?: number | null
    /**
     * Of prompts and answers together.
     *
     * @default null
     */
    readonly tokensPerMinute?: number | null
  }

  /**
   * What a run may spend before it stops.
   *
   * @default {"tokens":null,"calls":null,"money":null}
   */
  readonly budget?: {
    /**
     * Of prompts and answers together; null: no limit.
     *
     * @default null
     */
    readonly tokens?: number | null
    /**
     * How often a server may be asked, retries included; answers from the cache cost nothing.
     *
     * @default null
     */
    readonly calls?: number | null
    /**
     * In what the prices are in.
     *
     * @default null
     */
    readonly money?: number | null
  }

  /**
   * What tokens cost, for a budget of money.
   *
   * @default []
   */
  readonly prices?: ReadonlyArray<{
    /**
     * A model's name, or how it begins.
     */
    readonly model: string
    /**
     * Of prompts.
     */
    readonly input: number
    /**
     * Of answers.
     */
    readonly output: number
  }>

  /**
   * What share of a wait is left to chance, so that many clients don't come back all at once.
   *
   * @default 0.25
   */
  readonly jitter?: number
}
