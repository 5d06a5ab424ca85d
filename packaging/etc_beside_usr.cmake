# CPack installs everything below /usr; a distribution keeps configuration in /etc.
file(GLOB found ${CPACK_TEMPORARY_DIRECTORY}/*/usr/etc)
foreach(etc ${found})
  get_filename_component(root ${etc}/../.. ABSOLUTE)
  file(RENAME ${etc} ${root}/etc)
endforeach()
