/** Common words of five letters, all different, for the game `word_guess`. */
export const fiveLetters: ReadonlyArray<string> = `
  acorn actor adult agent alarm album amber angel apple apron arrow attic award bacon badge baker basil beach beard
  berry birch blade blaze board bonus boots brain bread brick bride bring broom brush cabin camel candy canoe cargo
  cedar chain chair chalk cheek chess chief child cider cliff climb clock cloud coach coral couch crane cream crown
  curve daisy dance diary ditch dough dozen dream dress drift drill eagle earth elbow ember entry equal error event
  fable fairy fence ferry fever field flame flask fleet flour flute focus forge frame frost fruit giant glass globe
  glove goose grain grape grass green guest habit happy heart hedge honey horse hotel house human igloo ivory jelly
  jewel juice kayak knife koala label ladle lemon level light lilac limit linen liver lodge lunar magic maple march
  medal melon metal minor model money month motor mouse music night noble north novel nurse oasis ocean olive onion
  opera orbit otter owner panda paper party peach pearl pedal piano pilot pizza plane plant plate point polar pound
  prize proud pupil queen quiet quilt radio ranch raven ridge river robin robot rocky salad sauce scarf shade sheep
  shelf shirt siren skirt smile smoke snake solar spice spoon sport stage stamp steam stone storm sugar swamp table
  teeth tiger toast torch tower train trunk tulip uncle urban vault video viola virus visit voice wagon waist watch
  wheel whale wheat witch world wrist yacht young youth zebra
`
  .trim()
  .split(/\s+/)
