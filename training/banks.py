"""Words that name things: the same for all splits."""

ITEMS = """shoes jacket lamp kettle chair phone book table shirt blender clock camera backpack coat dress tent mirror
keyboard monitor vase pillow printer toaster sofa bike helmet watch speaker radio drill blanket desk boots sweater hat
ring oven mixer rug laptop tablet heater fan guitar toy skirt gloves trousers bag scarf cup knife pan towel basket""".split()
DURATIONS = ["two days", "three days", "four days", "five days", "a week", "two weeks", "three weeks", "ten days", "a month", "six days", "twelve days"]
NAMES = """Anna Ben Carla David Ella Finn Greta Hugo Ida Jonas Karl Lena Mara Nils Olga Paul Rita Sara Tom Uma Victor Wanda
Yusuf Zoe Ali Bea Chen Dora Emil Fatima Gus Hana Ivan Julia Ken Lara Mia Noah Omar Priya Ravi Sven Tina Vera""".split()
CITIES = "Berlin Paris London Rome Madrid Vienna Oslo Boston Lima Cairo Delhi Tokyo Dublin Porto Prague Zurich".split()
COLOURS = "red blue green yellow black white brown grey pink purple orange".split()
PETS = "dog cat horse parrot rabbit snake fish hamster".split()
WORK = "cook teacher nurse driver painter baker doctor farmer pilot tailor".split()
DRINKS = "tea coffee milk water juice cocoa lemonade beer".split()
SPORTS = "tennis football chess golf rowing judo hockey swimming".split()
THINGS = "hotel film book meal concert museum tour game course restaurant play show lecture trip park".split()
MONTHS = "January February March April May June July August September October November December".split()
NTH = ["third", "fourth", "fifth", "sixth"]
COUNTS = ["three", "four", "five", "six"]
