# Runs PROGRAM with FOLDER/input.txt as its input; its output must be FOLDER/expected.txt.
execute_process(COMMAND ${PROGRAM} 3 INPUT_FILE ${FOLDER}/input.txt OUTPUT_VARIABLE output
                RESULT_VARIABLE result)
file(READ ${FOLDER}/expected.txt expected)
if(NOT result EQUAL 0 OR NOT output STREQUAL expected)
  message(FATAL_ERROR "expected\n${expected}\nbut got (${result})\n${output}")
endif()
